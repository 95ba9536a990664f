import Core
import Foundation
import RootgateClient
import ServiceTestSupport
import TestSupport
import Testing

@testable import Server

@Suite(
    "The console in a browser", .serialized,
    .enabled(if: Browser.path != nil, "there is no chromium: the console's pages are not opened in a browser"))
struct BrowserTests {
    /// Where the pictures of the handbook go; `nil`: they are made and dropped.
    private static let pictures: String? =
        ProcessInfo.processInfo.environment["ROOTGATE_TEST_PICTURES"] == "1"
        ? packageFile("deploy/handbook/pictures") : nil
    private static let pictureBytesMax = 150 << 10

    /// The program with the console, and where that is.
    private func start() throws -> (process: ServiceProcess, address: String) {
        let process = try ServiceProcess(
            ["--operator", "127.0.0.1:0", "--console", "--sample-proofs", "16"], lines: 2)
        let line = try #require(process.announcements.last)
        let address = try #require(line.components(separatedBy: " are at ").last)
        try #require(address.hasPrefix("http://127.0.0.1:"), "\(line)")
        return (process, address)
    }

    /// Makes a picture, and keeps it in the handbook under the name when that is wanted. Without a name it is only
    /// made.
    private func shoot(
        _ name: String?, _ browser: Browser, from element: String? = nil, width: Int, height: Int, isDark: Bool = false
    ) throws {
        let bytes = try browser.picture(from: element, width: width, height: height, isDark: isDark)
        #expect(bytes.starts(with: [0x89, 0x50, 0x4e, 0x47]))
        #expect(bytes.count <= Self.pictureBytesMax, "\(name ?? "a picture") has \(bytes.count) bytes")
        guard let folder = Self.pictures, let name else { return }
        try Data(bytes).write(to: URL(fileURLWithPath: "\(folder)/\(name).png"))
    }

    /// Fills the form of the page that explains, as a person does, and sends it.
    private func explain(_ line: String, in collaboration: String, _ browser: Browser, _ address: String) throws {
        try browser.visit(address + "/explain")
        func quoted(_ text: String) throws -> String {
            String(decoding: try JSONEncoder().encode(text), as: UTF8.self)
        }
        browser.expectLoad()
        try browser.evaluate(
            """
            document.getElementById("proof").value = \(try quoted(line));
            document.getElementById("collaboration").value = \(try quoted(collaboration));
            document.querySelector("form button").click();
            """)
        try browser.waitForLoad()
    }

    @Test("The overview renews itself, and stops when it is told to")
    func overview() async throws {
        let (process, address) = try start()
        let client = try process.client()
        let contents = try await ConsoleContents(client, word: "")
        let browser = try Browser()
        try browser.visit(address + "/")
        #expect(try browser.evaluate("document.querySelectorAll('figure svg path.l0').length") as? Int == 9)
        let up = "document.querySelector('.state span').textContent"
        let first = try browser.evaluate(up) as? String
        // A picture shows two minutes.
        let end = ContinuousClock.now + .seconds(Self.pictures == nil ? 5 : 120)
        var round = 0
        while ContinuousClock.now < end {
            try await contents.visit(round)
            round += 1
            try await Task.sleep(for: .milliseconds(200))
        }
        #expect(try browser.evaluate(up) as? String != first)
        #expect(try browser.evaluate("document.querySelectorAll('main').length") as? Int == 1)
        try shoot("overview", browser, width: 1000, height: 790)
        try shoot(nil, browser, width: 390, height: 900, isDark: true)
        try browser.evaluate("document.querySelector('.live button').click()")
        #expect(try browser.evaluate("document.querySelector('.live button').textContent") as? String == "Go on")
        let paused = try browser.evaluate(up) as? String
        try await Task.sleep(for: .seconds(5))
        #expect(try browser.evaluate(up) as? String == paused)
        #expect(browser.complaints.isEmpty, "\(browser.complaints)")
    }

    @Test("A granted and a refused proof are explained in the form and from the sample")
    func explanations() async throws {
        let (process, address) = try start()
        let client = try process.client()
        let contents = try await ConsoleContents(client, word: "")
        let browser = try Browser()
        let good = try await contents.proof()
        try explain(good.jsonLine, in: contents.collaboration.description, browser, address)
        #expect(try browser.document().contains("The service would <b>grant</b> this proof now"))
        #expect(try browser.evaluate("document.querySelectorAll('svg.tree g.sibling').length") as? Int == 3)
        #expect(try browser.evaluate("document.getElementById('proof').value") as? String == good.jsonLine)
        try shoot(nil, browser, width: 390, height: 1100)
        var bad = try await contents.proof(device: 2)
        bad.inclusionHashes[1] = bad.inclusionHashes[0]
        #expect(try await client.verify(bad, in: contents.collaboration) == .notParticipant)
        try browser.visit(address + "/explain")
        browser.expectLoad()
        try browser.evaluate("document.querySelector('table a').click()")
        try browser.waitForLoad()
        let document = try browser.document()
        #expect(document.contains("failed: not-participant") && document.contains("class=\"root stranger\""))
        try shoot("explain", browser, from: "#answer", width: 960, height: 780)
        #expect(browser.complaints.isEmpty, "\(browser.complaints)")
        #expect(try await client.verify(good, in: contents.collaboration) == .granted)
    }

    @Test("Hostile names run no script in a real browser, and stay text")
    func hostileNames() async throws {
        let (process, address) = try start()
        let word = "<script>alert(1)</script>\"><img src=x onerror=alert(2)>'><svg onload=alert(3)>"
        let contents = try await ConsoleContents(try process.client(), word: word)
        let browser = try Browser()
        for path in [
            "/collaborations", "/collaboration?id=\(FormFields.encoded(contents.collaboration.description))",
            "/shelf?account=ana", "/principals", "/shelf?account=\(FormFields.encoded(word))",
            "/collaborations?prefix=\(FormFields.encoded(word))",
        ] {
            try browser.visit(address + path)
            #expect(
                try browser.evaluate(
                    "document.querySelectorAll('script, img:not(.thumbnail), [onerror], [onload]').length")
                    as? Int == 0, "\(path)")
        }
        try browser.visit(address + "/collaboration?id=\(FormFields.encoded(contents.collaboration.description))")
        #expect(
            try browser.evaluate("document.querySelector('h1').textContent") as? String == "Trip to the lakes " + word)
        try explain("{\"\(word)\":1}", in: word, browser, address)
        #expect(try browser.evaluate("document.getElementById('collaboration').value") as? String == word)
        #expect(browser.complaints.filter { !$0.contains("400") }.isEmpty, "\(browser.complaints)")
    }

    @Test("A shelf shows its thumbnail, and a page of another site can neither read, frame nor send to the console")
    func otherSites() async throws {
        let (process, address) = try start()
        let contents = try await ConsoleContents(try process.client(), word: "")
        let browser = try Browser()
        try browser.visit(address + "/shelf?account=ana")
        #expect(try browser.evaluate("document.querySelector('img.thumbnail').naturalWidth") as? Int == 2)
        try shoot("shelf", browser, width: 1000, height: 620)
        try browser.visit(address + "/collaboration?id=\(FormFields.encoded(contents.collaboration.description))")
        try shoot("collaboration", browser, width: 1000, height: 1010, isDark: true)
        #expect(browser.complaints.isEmpty, "\(browser.complaints)")
        let folder = ScratchDirectory()
        let page = """
            <iframe src="\(address)/"></iframe><form method="post" action="\(address)/explain">
            <input name="proof" value="{}"></form>
            """
        try Data(page.utf8).write(to: URL(fileURLWithPath: folder.path + "/other.html"))
        try browser.visit("file://\(folder.path)/other.html")
        #expect(
            try browser.evaluate("fetch('\(address)/').then(() => 'read', () => 'refused')") as? String == "refused")
        #expect(browser.complaints.contains { $0.contains("frame-ancestors") }, "\(browser.complaints)")
        browser.expectLoad()
        try browser.evaluate("document.forms[0].submit()")
        try browser.waitForLoad()
        #expect(try browser.document().contains("403 Forbidden"))
    }
}
