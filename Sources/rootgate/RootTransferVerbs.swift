import Core
import Foundation
import LoadHarness
import Platform
import RootgateClient

/// Writes all root hashes of a collaboration to standard output, in ascending order of their bytes.
func exportRoots(
    _ collaboration: CollaborationIdentifier, after start: Digest?, _ client: RootgateClient, _ arguments: Arguments
) async throws {
    let progress = progressMeter(arguments)
    defer { progress.end() }
    let isJSON = arguments.isOn("json")
    let total = try await client.state(of: collaboration).rootCount
    progress.begin("exporting root hashes", share: start == nil ? 0...1 : nil)
    var count: UInt64 = 0
    var next: ListPage<Digest>? = try await client.roots(of: collaboration, after: start, limit: Limits.rootsPerPageMax)
    while let page = next {
        // The next page is on its way while this one is written.
        async let following =
            page.hasMore && !page.items.isEmpty
            ? client.roots(of: collaboration, after: page.items.last, limit: Limits.rootsPerPageMax) : nil
        var text = ""
        for root in page.items { text += isJSON ? "{\"rootHash\":\"\(root)\"}\n" : "\(root)\n" }
        progress.printAside(text, terminator: "")
        count += UInt64(page.items.count)
        progress.show("\(count) of \(total)", done: total > 0 ? Double(count) / Double(total) : 1)
        next = try await following
    }
}

/// Adds the root hashes of a file, and prints how many.
func importRoots(
    _ path: String, to collaboration: CollaborationIdentifier, _ client: RootgateClient, _ arguments: Arguments
) async throws {
    let progress = progressMeter(arguments)
    defer { progress.end() }
    let record = arguments.text("resume").map { ImportRecord($0, of: collaboration) }
    let lines = try RootLines(path, hashes: record != nil)
    let start = try record?.position() ?? RootLines.Position()
    progress.begin("importing root hashes", share: 0...1)
    guard try start.bytes == 0 || lines.skip(to: start) else {
        throw UsageError(
            ofFile:
                "\(path) does not begin as the file of the import that --resume tells of: remove the file that "
                + "--resume names to import all of \(path)")
    }
    let work = RootImport(
        lines, to: collaboration, by: client, record: record,
        patience: .seconds(try arguments.decimal("timeout", in: 0.01...86_400)))
    let begun = ContinuousClock.now
    func seconds() -> Double { max((ContinuousClock.now - begun) / .seconds(1), 0.000_001) }
    var summary = RootImport.Summary(position: start)
    do {
        try await work.run(from: start) { done in
            summary = done
            progress.show(
                "\(done.sent) root hashes, \(Int(Double(done.sent) / seconds())) a second",
                done: lines.share(of: done.bytes))
        }
    } catch {
        progress.end()
        if summary.position.lines > 0 {
            let next =
                record == nil
                ? "importing the file again adds the rest, and with --resume FILE another run goes on where one ended"
                : "the same command goes on behind them"
            complain("the first \(summary.position.lines) lines of \(path) are added and durable: \(next)")
        } else if summary.sent > 0 {
            complain("\(summary.sent) root hashes of \(path) are added and durable: importing it again adds the rest")
        }
        throw error
    }
    record?.remove()
    progress.end()
    printNow(
        arguments.isOn("json")
            ? try json([
                "sent": summary.sent, "added": summary.new, "lines": summary.position.lines,
                "skippedLines": start.lines, "sequence": summary.sequence, "seconds": seconds(),
            ])
            : "added \(summary.new) of \(summary.sent) root hashes (sequence \(summary.sequence)), in "
                + "\(String(format: "%.1f", seconds())) s, \(Int(Double(summary.sent) / seconds())) a second"
                + (start.lines > 0 ? "; \(start.lines) lines were done before" : ""))
}
