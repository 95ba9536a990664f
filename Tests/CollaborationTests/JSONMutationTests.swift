import Collaboration
import Core
import Foundation
import TestSupport
import Testing

/// Requests with random changes of their bytes.
struct JSONMutationTests {
    /// The examples of all requests in PROTOCOL.md, without the white space between their values.
    private func requests() throws -> [(name: String, json: [UInt8])] {
        let suffix = "-request"
        return try ProtocolDocument().jsonBlocks.filter { $0.name.hasSuffix(suffix) }.map { block in
            let value = try JSONSerialization.jsonObject(with: Data(block.text.utf8))
            let data = try JSONSerialization.data(
                withJSONObject: value, options: [.withoutEscapingSlashes, .sortedKeys])
            return (String(block.name.dropLast(suffix.count)), Array(data))
        }
    }

    /// What mutations insert: syntax, halves of escape sequences, bytes that are no text, numbers at borders.
    private static let pieces: [[UInt8]] =
        [
            "{", "}", "[", "]", ",", ":", "\"", "\\", "\\u", "\\ud83d", "\\udddd", "\\u0000", "\\n", "-", "+", ".", "e",
            "0", "1", "9", "null", "true", "NaN", " ", "\t", "\n", "\u{feff}", "é", "🗝", "18446744073709551616", "2.5",
            "1e3", "\"a\":1,", ",\"a\":null", "[[[[[[[[[[[[[[[[", "//", "\u{1b}", "\u{202e}",
        ].map { Array($0.utf8) } + [[0xff], [0xc3], [0xed, 0xa0, 0x80], [0x00]]

    /// Changes a few places: inserts, deletes, repeats or replaces bytes.
    private func mutated(_ json: [UInt8], _ generator: inout SeededGenerator) -> [UInt8] {
        var bytes = json
        for _ in 0..<Int.random(in: 1...3, using: &generator) {
            let place = Int.random(in: 0...bytes.count, using: &generator)
            let end = min(bytes.count, place + Int.random(in: 0...12, using: &generator))
            switch Int.random(in: 0..<6, using: &generator) {
            case 0: bytes.removeSubrange(place..<end)
            case 1: bytes.insert(contentsOf: bytes[place..<end], at: place)
            case 2: bytes.insert(contentsOf: Self.pieces.randomElement(using: &generator) ?? [], at: place)
            case 3: bytes.replaceSubrange(place..<end, with: Self.pieces.randomElement(using: &generator) ?? [])
            case 4: if place < bytes.count { bytes[place] = UInt8.random(in: 0...255, using: &generator) }
            default: bytes.insert(contentsOf: member(of: bytes, &generator), at: place)
            }
        }
        return bytes
    }

    /// Bytes from one quotation mark, comma or bracket to another one.
    private func member(of bytes: [UInt8], _ generator: inout SeededGenerator) -> ArraySlice<UInt8> {
        let marks = bytes.indices.filter { [0x22, 0x2c, 0x5b, 0x5d, 0x7b, 0x7d].contains(bytes[$0]) }
        guard let one = marks.randomElement(using: &generator), let other = marks.randomElement(using: &generator)
        else { return [] }
        return bytes[min(one, other)..<max(one, other)]
    }

    @Test("No mutation of a request is accepted that Foundation refuses, and none ends the process")
    func mutations() throws {
        let requests = try requests()
        var accepted = 0
        try withSeeds(4000) { generator, context in
            let request = try #require(requests.randomElement(using: &generator))
            let bytes = mutated(request.json, &generator)
            do throws(ServiceError) {
                let read = try Requests.parse(request.name, bytes)
                accepted += 1
                let known = try? JSONSerialization.jsonObject(with: Data(bytes))
                #expect(known != nil, context)
                // What was read says the same when it is written and read again.
                let written = try JSON.encode(read)
                #expect(JSONDump.of(try JSON.encode(try Requests.parse(request.name, written))) == JSONDump.of(written))
            } catch {
                #expect([.malformedRequest, .limitExceeded].contains(error.code), context)
                #expect(error.reason.utf8.count <= Limits.errorTextBytesMax, context)
                let hasControls = error.reason.unicodeScalars.contains { $0.isControl }
                #expect(!hasControls, context)
            }
        }
        #expect(accepted > 40, "mutations leave too few requests valid to say anything: \(accepted)")
    }

    @Test(
        "Python reads each mutation as the same value, or refuses it too",
        .enabled(if: python != nil, "there is no python3 with the package cryptography"))
    func mutationsInPython() throws {
        let python = try #require(python)
        let requests = try requests()
        var texts: [[UInt8]] = []
        try withSeeds(4000) { generator, _ in
            texts.append(mutated(try #require(requests.randomElement(using: &generator)).json, &generator))
        }
        let expected = try JSONDump.ofPython(texts, python) { try runProgram($0, $1, input: $2).output }
        #expect(expected.count == texts.count)
        #expect(expected.contains { $0 != nil } && expected.contains(nil))
        for (iteration, (text, expected)) in zip(texts, expected).enumerated() {
            #expect(JSONDump.of(text) == expected, "seed \(runSeed), iteration \(iteration)")
        }
    }

    @Test("The longest texts of the worst kinds are refused in good time")
    func longTexts() {
        let bytesMax = Limits.collaborationRequestBytesMax
        let names = (0..<23_000).map { "\"\($0 + 10_000)\":0" }
        let worst: [[UInt8]] = [
            [UInt8](repeating: UInt8(ascii: "["), count: bytesMax),
            Array(repeatElement("{\"a\":", count: 50_000).joined().utf8),
            Array(("{" + names.joined(separator: ",") + "}").utf8), [UInt8](repeating: 0x20, count: bytesMax),
            Array(("{" + names.joined(separator: ",") + ",\"10000\":0}").utf8),
            Array(("[" + repeatElement("0", count: bytesMax / 2 - 1).joined(separator: ",") + "]").utf8),
            Array(("\"" + String(repeating: "\\u0041", count: bytesMax / 6 - 1) + "\"").utf8),
        ]
        let start = ContinuousClock.now
        for text in worst {
            #expect(text.count <= bytesMax)
            #expect(thrownServiceError { _ = try Requests.parse("highlight", text) } != nil)
        }
        #expect(ContinuousClock.now - start < .seconds(30), "something takes time in the square of the text's length")
    }
}
