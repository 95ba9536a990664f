import Core
import Foundation
import Server
import ServiceTestSupport
import TestSupport
import Testing
import Transport

@testable import rootgate

@Suite("The probe without curl")
struct ProbeCommandTests {
    @Test("A probe succeeds when every check passes, fails when one does, and says which")
    func verdicts() throws {
        let folder = ScratchDirectory()
        let service = try TestService {
            $0.operatorEndpoints = [Endpoint(host: "127.0.0.1", port: 0), Endpoint(path: folder.path + "/operator")]
        }
        for endpoint in service.service.operatorEndpoints {
            let place = ["--operator", endpoint.description]
            #expect(becomesTrue { (try? runProgram(programPath, ["probe"] + place).code) == 0 })
            let ready = try runProgram(programPath, ["probe"] + place)
            #expect(ready.output.hasPrefix("drain ok\nstorage ok\n") && ready.errors.isEmpty)
            let live = try runProgram(programPath, ["probe", "--live"] + place)
            #expect(live.code == 0 && live.output == "process ok\nworkers ok\n")
        }
        let place = ["--operator", service.service.operatorEndpoints.map(\.description).joined(separator: ",")]
        service.service.resources.rootSets.health.report(.damaged, "a test says so")
        let damaged = try runProgram(programPath, ["probe"] + place)
        #expect(damaged.code == 1, "\(damaged)")
        #expect(damaged.output.contains("storage failed: the storage is damaged: see the service's log\n"))
        #expect(try runProgram(programPath, ["probe", "--live"] + place).code == 0)
        let json = try runProgram(programPath, ["probe", "--json"], environment: ["ROOTGATE_OPERATOR": place[1]])
        struct Answer: Decodable {
            struct Check: Decodable {
                let name: String
                let passes: Bool
                let fault: String?
            }
            let passes: Bool
            let checks: [Check]
        }
        let answer = try JSONDecoder().decode(Answer.self, from: Data(json.output.utf8))
        #expect(json.code == 1 && !answer.passes && answer.checks.count == 8)
        #expect(answer.checks.filter { !$0.passes }.map(\.name) == ["storage"])
        #expect(answer.checks.allSatisfy { $0.passes == ($0.fault == nil) })
    }

    @Test("A client that asks at the address of pages is told so")
    func wrongAddress() throws {
        let service = try TestService { $0.operatorEndpoints = [Endpoint(host: "127.0.0.1", port: 0)] }
        let place = try #require(service.service.operatorEndpoints.first)
        let told = try runProgram(programPath, ["stats", "--server", place.description])
        #expect(told.code == 2 && told.errors.contains("the answer is one of HTTP: "), "\(told)")
    }

    @Test("A probe of nobody, of a silent service and of another program's pages fails with code 2 and one line")
    func nobody() throws {
        let silent = try TestSocket(host: "127.0.0.1")
        let service = try TestService()
        for (place, words, reasons) in [
            ("127.0.0.1:1", [], ["can't connect to 127.0.0.1:1"]),
            ("127.0.0.1:\(silent.port)", ["--timeout", "0.3"], ["does not answer within the time"]),
            // The clients' port of the service itself. Its answer is lost when the system resets the connection because
            // the rest of the request was not read.
            (
                service.endpoint.description, ["--timeout", "5"],
                ["sends no page of an operator", "closed the connection without a page"]
            ),
            ("nowhere", [], ["--operator takes HOST:PORT or unix:/PATH, not nowhere"]),
        ] {
            let result = try runProgram(programPath, ["probe", "--operator", place] + words)
            #expect(result.code == 2 && result.output.isEmpty, "\(place): \(result)")
            #expect(
                reasons.contains { result.errors.contains($0) } && result.errors.split(separator: "\n").count == 1,
                "\(result)")
        }
    }

    @Test("Only whole responses with a length are pages, and only lines of checks are a probe's")
    func pages() {
        func page(_ text: String) -> OperatorPage? { OperatorPage(Array(text.utf8)) }
        let whole = "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 23\r\n\r\na ok\nb failed: no room\n"
        #expect(page(whole)?.status == 503)
        #expect(page(whole)?.checks?.map(\.name) == ["a", "b"])
        #expect(page(whole)?.checks?.map(\.fault) == [nil, "no room"])
        for end in 0..<whole.utf8.count { #expect(OperatorPage(Array(whole.utf8.prefix(end))) == nil) }
        #expect(page("HTTP/1.1 200 OK\r\n\r\na ok\n") == nil)
        #expect(page("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\na ok\n") == nil)
        #expect(page("ICY 200 OK\r\nContent-Length: 5\r\n\r\na ok\n") == nil)
        for body in ["", "a\n", "a nok\n", "<html>\n"] {
            let length = body.utf8.count
            #expect(page("HTTP/1.1 200 OK\r\nContent-Length: \(length)\r\n\r\n\(body)")?.checks == nil, "\(body)")
        }
    }
}
