import Core
import TLS
import Testing
import Transport

@testable import Server

@Suite struct ConnectionBoundsTests {
    private func configuration(_ connections: Int, encrypted: Bool = false) -> Configuration {
        var configuration = Configuration(dataDirectory: "", workers: 2)
        configuration.connectionsMax = connections
        if encrypted { configuration.tls = ServerTLSSettings(certificatePath: "", keyPath: "") }
        return configuration
    }

    @Test(
        "With few descriptors there are fewer places, and fewer connections on their way out",
        arguments: [
            (0, 1, 1), (70, 1, 1), (96, 20, 6), (128, 44, 14), (1024, 600, 354), (926, 600, 256), (925, 600, 255),
            (800, 548, 182), (1271, 600, 600), (65_536, 600, 600),
        ])
    func fewDescriptors(descriptors: Int, places: Int, leaving: Int) {
        let configuration = configuration(600)
        let bounds = ConnectionBounds(configuration, descriptors: descriptors)
        #expect(bounds.places == places && bounds.leaving == leaving && bounds.handshakes == 0, "\(bounds)")
        #expect(configuration.descriptorsNeeded == 926)
    }

    @Test("A process that may have any number of descriptors has all places, and as many connections on their way out")
    func unlimited() {
        let bounds = ConnectionBounds(configuration(600, encrypted: true), descriptors: nil)
        #expect(bounds.places == 600 && bounds.leaving == 600 && bounds.handshakes == 1024, "\(bounds)")
        #expect(ConnectionBounds(configuration(4), descriptors: nil).leaving == 256)
    }

    @Test("Handshakes that have begun, and as many that wait, share what the places leave")
    func handshakes() {
        let configuration = configuration(600, encrypted: true)
        for descriptors in configuration.descriptorsMin...4000 {
            let bounds = ConnectionBounds(configuration, descriptors: descriptors)
            let taken = bounds.places + bounds.leaving + 2 * bounds.handshakes
            #expect(bounds.places >= 20 && bounds.leaving >= 1 && bounds.handshakes >= 2, "\(bounds)")
            #expect(taken <= descriptors - 73, "\(bounds)")
            #expect((bounds.places == 600) == (descriptors >= 872), "\(bounds)")
            #expect((bounds.handshakes == 1024) == (descriptors >= configuration.descriptorsNeeded), "\(bounds)")
        }
        #expect(configuration.descriptorsNeeded == 2977)
    }

    @Test("Visitors of pages share it, too, with a loop for each server", arguments: [false, true])
    func visitors(encrypted: Bool) {
        var configuration = configuration(600, encrypted: encrypted)
        configuration.associationEndpoint = Endpoint(host: "127.0.0.1", port: 0)
        configuration.operatorEndpoints = [Endpoint(host: "127.0.0.1", port: 0)]
        // With TLS: the clients' handshakes, and a server of encrypted pages with its own.
        let (process, visitors) = encrypted ? (70 + 5 * 3, 8) : (70 + 2 * 3, 4)
        for descriptors in configuration.descriptorsMin...5000 {
            let bounds = ConnectionBounds(configuration, descriptors: descriptors)
            let taken = bounds.places + bounds.leaving + 2 * bounds.handshakes + visitors * bounds.visitors
            #expect(
                bounds.places >= 19 && bounds.visitors >= 1 && taken <= descriptors - process + visitors, "\(bounds)")
            #expect((bounds.visitors == 64) == (descriptors >= configuration.descriptorsNeeded), "\(bounds)")
        }
        #expect(configuration.descriptorsNeeded == 600 + 256 + (encrypted ? 2048 : 0) + visitors * 64 + process)
    }

    @Test("A service with many workers needs more descriptors to start")
    func descriptorsMin() {
        var configuration = configuration(600)
        #expect(configuration.descriptorsMin == 96)
        configuration.workers = 64
        #expect(configuration.descriptorsMin == 64 + 3 * 64 + 26)
        #expect(ConnectionBounds(configuration, descriptors: configuration.descriptorsMin).places == 20)
    }
}
