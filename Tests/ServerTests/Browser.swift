import Core
import Foundation
import TestSupport

/// Debian's chromium without a window, driven over two pipes by the DevTools protocol. It loads pages as an operator's
/// browser does: with its rules for scripts, origins and policies.
final class Browser {
    /// The program; `nil`: there is none.
    static let path = programPath("chromium")

    private let process = Process()
    private let folder = ScratchDirectory()
    private let input: FileHandle
    private let output: CInt
    private var received: [UInt8] = []
    private var lastNumber = 0
    private var session: String?
    /// What the browser has told besides answers: names of events.
    private(set) var events: [(name: String, parameters: [String: Any])] = []

    /// Starts the browser with one empty page.
    ///
    /// Throws when it does not answer.
    init() throws {
        let (toBrowser, fromBrowser) = (folder.path + "/to", folder.path + "/from")
        guard mkfifo(toBrowser, 0o600) == 0, mkfifo(fromBrowser, 0o600) == 0 else {
            throw ServiceError(.internalFault, "no pipes can be made")
        }
        process.executableURL = URL(fileURLWithPath: "/bin/sh")
        process.arguments = [
            "-c",
            """
            exec "$0" --headless=new --no-sandbox --disable-gpu --hide-scrollbars --no-first-run \
            --force-color-profile=srgb --disable-background-networking --disable-component-update \
            --user-data-dir="$1/profile" --remote-debugging-pipe about:blank 3<"$1/to" 4>"$1/from"
            """, Browser.path ?? "chromium", folder.path,
        ]
        process.standardOutput = FileHandle.nullDevice
        process.standardError = FileHandle.nullDevice
        try process.run()
        // Opening a pipe waits for the other side, in the shell's order.
        let writing = open(toBrowser, O_WRONLY)
        output = open(fromBrowser, O_RDONLY)
        input = FileHandle(fileDescriptor: writing, closeOnDealloc: true)
        let target = try call("Target.createTarget", ["url": "about:blank"])
        let attached = try call(
            "Target.attachToTarget", ["targetId": target["targetId"] ?? "", "flatten": true])
        session = attached["sessionId"] as? String
        for domain in ["Page", "Runtime", "Log"] { try call("\(domain).enable") }
    }

    deinit {
        kill(process.processIdentifier, SIGKILL)
        process.waitUntilExit()
        close(output)
    }

    // MARK: Pages

    /// Loads a page and waits until its load has ended.
    func visit(_ address: String) throws {
        events.removeAll { $0.name == "Page.loadEventFired" }
        try call("Page.navigate", ["url": address])
        try waitForLoad()
    }

    /// Waits for the end of the load that something on the page has begun.
    func waitForLoad() throws {
        let deadline = ContinuousClock.now + .seconds(60)
        while !events.contains(where: { $0.name == "Page.loadEventFired" }) { try receive(until: deadline) }
    }

    /// Forgets loads that have ended, before something begins another one.
    func expectLoad() { events.removeAll { $0.name == "Page.loadEventFired" } }

    /// The value of an expression in the page.
    @discardableResult
    func evaluate(_ expression: String) throws -> Any? {
        let answer = try call(
            "Runtime.evaluate", ["expression": expression, "returnByValue": true, "awaitPromise": true])
        guard answer["exceptionDetails"] == nil else {
            throw ServiceError(.internalFault, "\(expression): \(answer)")
        }
        return (answer["result"] as? [String: Any])?["value"]
    }

    /// The document as the browser has it now.
    func document() throws -> String { try evaluate("document.documentElement.outerHTML") as? String ?? "" }

    /// What went wrong in the pages so far: dialogs, errors of scripts, and what a policy has blocked.
    var complaints: [String] {
        events.filter { name, _ in
            ["Page.javascriptDialogOpening", "Runtime.exceptionThrown", "Log.entryAdded"].contains(name)
        }.map { "\($0.name): \($0.parameters)" }
    }

    /// A part of the page as a PNG: from an element, or from the top, down to `height` or the page's end.
    func picture(
        from element: String? = nil, width: Int, height: Int, isDark: Bool = false
    ) throws -> [UInt8] {
        try call(
            "Emulation.setEmulatedMedia",
            ["features": [["name": "prefers-color-scheme", "value": isDark ? "dark" : "light"]]])
        try call(
            "Emulation.setDeviceMetricsOverride",
            ["width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500])
        let whole = try evaluate("Math.ceil(document.documentElement.getBoundingClientRect().height)") as? Int ?? height
        var top = 0
        if let element {
            let place = "Math.floor(document.querySelector('\(element)').getBoundingClientRect().top + scrollY)"
            top = max(0, (try evaluate(place) as? Int ?? 0) - 16)
        }
        let answer = try call(
            "Page.captureScreenshot",
            [
                "format": "png", "captureBeyondViewport": true,
                "clip": ["x": 0, "y": top, "width": width, "height": min(height, max(1, whole - top)), "scale": 1],
            ])
        guard let text = answer["data"] as? String, let data = Data(base64Encoded: text) else {
            throw ServiceError(.internalFault, "there is no picture: \(answer.keys)")
        }
        return Array(data)
    }

    // MARK: The protocol

    @discardableResult
    func call(_ method: String, _ parameters: [String: Any] = [:]) throws -> [String: Any] {
        lastNumber += 1
        let number = lastNumber
        var message: [String: Any] = ["id": number, "method": method, "params": parameters]
        message["sessionId"] = session
        try input.write(contentsOf: try JSONSerialization.data(withJSONObject: message) + [0])
        let deadline = ContinuousClock.now + .seconds(60)
        while true {
            if let answer = answers.removeValue(forKey: number) {
                if let error = answer["error"] { throw ServiceError(.internalFault, "\(method): \(error)") }
                return answer["result"] as? [String: Any] ?? [:]
            }
            try receive(until: deadline)
        }
    }

    private var answers: [Int: [String: Any]] = [:]

    /// Receives some messages.
    private func receive(until deadline: ContinuousClock.Instant) throws {
        var waiting = pollfd(fd: output, events: Int16(POLLIN), revents: 0)
        let ready = poll(&waiting, 1, 1000)
        guard ready > 0 else {
            guard ContinuousClock.now < deadline else {
                throw ServiceError(.deadlineExceeded, "the browser does not answer")
            }
            return
        }
        var buffer = [UInt8](repeating: 0, count: 256 << 10)
        let count = read(output, &buffer, buffer.count)
        guard count > 0 else { throw ServiceError(.internalFault, "the browser has ended") }
        received += buffer[..<count]
        while let end = received.firstIndex(of: 0) {
            let text = received[..<end]
            received.removeFirst(end + 1)
            guard let message = try JSONSerialization.jsonObject(with: Data(text)) as? [String: Any] else { continue }
            if let number = message["id"] as? Int {
                answers[number] = message
            } else if let name = message["method"] as? String {
                events.append((name, message["params"] as? [String: Any] ?? [:]))
            }
        }
    }
}
