import Core
import Principals
import TestSupport
import Testing
import Wire

@testable import Server

@Suite("Wrong keys") struct WrongKeysTests {
    @Test("An address may present some wrong keys at once, and then one a second; others are not concerned")
    func slowed() {
        var keys = WrongKeys()
        let (first, second) = (Holder.address(UInt32(1)), Holder.address(UInt32(2)))
        for _ in 0..<Limits.wrongKeysAtOnce {
            #expect(keys.wait(of: first, at: 0) == nil)
            keys.note(first, at: 0)
        }
        #expect(keys.wait(of: first, at: 0) == 1000)
        #expect(keys.wait(of: second, at: 0) == nil)
        // An address of IPv6 is one with all that have its first 64 bits.
        let network = UInt128(0x2001_0db8) << 96
        for number in 0..<UInt128(Limits.wrongKeysAtOnce) { keys.note(.address(network | number), at: 0) }
        #expect(keys.wait(of: .address(network | 99), at: 0) == 1000)
        #expect(keys.wait(of: .address(network | 1 << 64), at: 0) == nil)
        #expect(keys.wait(of: first, at: 1000) == nil)
        keys.note(first, at: 1000)
        #expect(keys.wait(of: first, at: 1000) == 1000)
    }

    @Test("Not more than so many addresses are remembered, and the first one is forgotten for another one")
    func bounded() {
        var keys = WrongKeys()
        for number in 0..<Limits.wrongKeyAddressesMax + 100 {
            for _ in 0..<Limits.wrongKeysAtOnce { keys.note(.address(UInt32(number)), at: 0) }
            #expect(keys.count <= Limits.wrongKeyAddressesMax)
        }
        #expect(keys.wait(of: .address(UInt32(99)), at: 0) == nil)
        #expect(keys.wait(of: .address(UInt32(100)), at: 0) == 1000)
    }

    @Test("An address with too many wrong keys gets busy with the time to wait, and what is connected goes on")
    func overTheWire() async throws {
        let milliseconds = Shared<UInt64>(1000)
        let guarded = try await GuardedService(clock: MonotonicClock { milliseconds.value })
        let key = try await guarded.principal("p", [LimitedRole(.observe, prefixes: [.every])])
        let connected = try guarded.client(key)
        _ = try await connected.statistics()
        func present(_ text: String) throws -> ServiceError? {
            let peer = try RawPeer(guarded.service.endpoint)
            var bytes: [UInt8] = []
            for id in 0..<2 {
                FrameWriter.append(.request, Operation.hello.rawValue, requestID: UInt64(id), to: &bytes) {
                    Request.hello(minimum: 1, maximum: 1, key: Array(text.utf8)).append(to: &$0)
                }
            }
            peer.send(bytes)
            let frame = try #require(peer.readFrame())
            guard frame.header.kind == .error else { return nil }
            // Nothing behind a key that was not accepted is read.
            #expect(peer.isClosed)
            return try frame.body.withRawBytes { bytes throws(ServiceError) in try FrameWriter.decodeError(bytes) }
        }
        // Keys of any length count.
        for length in [1, 63, 65, 255] {
            #expect(try present(String(repeating: "r", count: length))?.code == .keyRefused, "\(length)")
        }
        for _ in 4..<Limits.wrongKeysAtOnce { #expect(try present(APIKey.random().text)?.code == .keyRefused) }
        for tried in [APIKey.random().text, key.text, key.text + "A", "r"] {
            let busy = try #require(try present(tried))
            #expect(busy.code == .busy && busy.retryAfter == .milliseconds(1000), "\(busy)")
        }
        let figures = try await connected.statistics()
        #expect(figures.first { $0.name == "keys-slowed" }?.value == 4)
        milliseconds.with { $0 += 1000 }
        #expect(try present(key.text) == nil)
        #expect(try present(APIKey.random().text)?.code == .keyRefused)
        #expect(try present(key.text)?.code == .busy)
    }
}
