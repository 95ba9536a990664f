import CKernels
import Core
import TestSupport
import Testing

@testable import Signatures

/// The rows of the kernels' tables against libcrypto's multiples.
@Suite(.serialized)
struct TableTests {
    /// A kernel's row, from the affine coordinates of a point: x and 2 y times 2^260 modulo p, four words each.
    private static func row(_ point: [UInt8]) throws -> [UInt64] {
        let arithmetic = try IntegerArithmetic(), library = try CurveLibrary()
        var words: [UInt64] = []
        for (coordinate, shift) in [(point[1...32], 260), (point[33...64], 261)] {
            let radix = try arithmetic.power(shift, modulo: library.prime)
            let value = try arithmetic.product(Integer(Array(coordinate)), radix, modulo: library.prime)
            let bytes = try #require(value.bytes)
            for start in stride(from: 24, through: 0, by: -8) {
                words.append(bytes[start..<start + 8].reduce(0) { $0 << 8 | UInt64($1) })
            }
        }
        return words
    }

    private static func row(_ table: UnsafePointer<UInt64>, _ index: Int) -> [UInt64] {
        (0..<8).map { table[8 * index + $0] }
    }

    @Test("The generator's table holds odd multiples of 2^(13 s) G in subtable s", arguments: NamedKernel.p256)
    func generator(kernel: NamedKernel) throws {
        let equipped = try kernel.equipped(), library = try CurveLibrary()
        var generator = SeededGenerator(seed: runSeed)
        var places = (0..<20).flatMap { [($0, 0), ($0, 1), ($0, 15), ($0, 16), ($0, 4095)] }
        for _ in 0..<500 {
            places.append((Int.random(in: 0..<20, using: &generator), Int.random(in: 0..<4096, using: &generator)))
        }
        for (subtable, row) in places {
            let scalar = try library.product(library.power(13 * subtable), Integer(UInt(2 * row + 1)))
            let expected = try Self.row(#require(try library.multiple(scalar)))
            #expect(
                Self.row(equipped.generator, 4096 * subtable + row) == expected,
                "seed \(runSeed), subtable \(subtable), row \(row)")
        }
    }

    @Test("All kernels make the same table for the generator")
    func sameGenerator() throws {
        let tables = try NamedKernel.p256.map { EquippedKernel(try #require($0.p256)) }
        for other in tables.dropFirst() {
            let words = RG_P256_GENERATOR_BYTES / 8
            let first = UnsafeBufferPointer(start: tables[0].generator, count: words)
            #expect(first.elementsEqual(UnsafeBufferPointer(start: other.generator, count: words)))
        }
    }

    /// How the tables of one form are made: digits of so many bits, in so many columns.
    private struct Shape {
        let width: Int
        let columns: Int

        var digits: Int { (256 + width - 1) / width }
        var subtables: Int { (digits + columns - 1) / columns }
        var rows: Int { 1 << (width - 1) }
    }

    /// The shapes of the forms 0 and 1.
    private static let shapes = [Shape(width: 6, columns: 4), Shape(width: 6, columns: 2)]

    @Test("A known key's table is a row of 64 bytes for each odd digit and subtable", arguments: NamedKernel.p256)
    func knownSize(kernel: NamedKernel) throws {
        let functions = try #require(kernel.p256).pointee
        let shape = Self.shapes[Int(functions.known_form)]
        #expect(Int(functions.known_bytes) == 64 * shape.subtables * shape.rows)
        #expect(shape.subtables * shape.columns * shape.width >= 256)
    }

    @Test(
        "A known key's table holds odd multiples of 2^(width columns s) Q in subtable s", arguments: NamedKernel.p256)
    func known(kernel: NamedKernel) throws {
        let functions = try #require(kernel.p256), library = try CurveLibrary()
        let shape = Self.shapes[Int(functions.pointee.known_form)]
        let tableBytes = Int(functions.pointee.known_bytes)
        let cases = try SignatureCases(seed: runSeed, keys: 16, nonces: 2)
        let workspace = UnsafeMutableRawPointer.allocate(
            byteCount: functions.pointee.workspace_bytes, alignment: RG_P256_ALIGNMENT)
        let guardBytes = 64
        let memory = UnsafeMutableRawPointer.allocate(
            byteCount: tableBytes * RG_P256_BUILD_MAX + guardBytes, alignment: RG_P256_ALIGNMENT)
        defer {
            workspace.deallocate()
            memory.deallocate()
        }
        var points = try (0..<12).map { _ in try cases.ordinary(.none).point }
        // x = 0, the generator, its opposite and twice it.
        points.append([3] + [UInt8](repeating: 0, count: 32))
        points += try cases.relatedKeys([1, 2]).prefix(3).map(\.point)
        let zero = try Integer()
        for count in [1, 7, 8, 9, 15, 16] {
            let used = Array(points.suffix(count))
            let bytes = tableBytes * count
            memory.initializeMemory(as: UInt8.self, repeating: 0x5a, count: bytes + guardBytes)
            let tables = (0..<count).map { index in
                UnsafeMutablePointer<UInt64>?(
                    (memory + tableBytes * index).assumingMemoryBound(to: UInt64.self))
            }
            let flat = used.flatMap { $0 + [UInt8](repeating: 0, count: 65 - $0.count) }
            let built = flat.withUnsafeBufferPointer { flat in
                let addresses = (0..<count).map { index in flat.baseAddress.map { $0 + 65 * index } }
                return functions.pointee.build_known(addresses, tables, count, workspace)
            }
            #expect(built == 1, "\(count) keys")
            let behind = UnsafeRawBufferPointer(start: memory + bytes, count: guardBytes)
            #expect(behind.allSatisfy { $0 == 0x5a }, "bytes behind the last table were written")
            for (index, point) in used.enumerated() where count == 16 || index == 0 || index == count - 1 {
                let table = UnsafePointer<UInt64>(try #require(tables[index]))
                for subtable in 0..<shape.subtables {
                    let power = try library.power(shape.width * shape.columns * subtable)
                    for row in count == 16 ? [0, 1, 15, 16, shape.rows - 1] : Array(0..<shape.rows) {
                        let scalar = try library.product(power, Integer(UInt(2 * row + 1)))
                        let expected = try Self.row(#require(try library.sum(zero, point, scalar)))
                        #expect(
                            Self.row(table, shape.rows * subtable + row) == expected,
                            "seed \(runSeed), \(count) keys, key \(index), subtable \(subtable), row \(row)")
                    }
                }
            }
        }
    }

    @Test("A point that is none has no table, wherever it stands among others", arguments: NamedKernel.p256)
    func badPoints(kernel: NamedKernel) throws {
        let equipped = try kernel.equipped()
        let maker = try SignatureCases(seed: runSeed, keys: 16, nonces: 2)
        let bad = try maker.boundaryKeys().filter { $0.expected == RG_P256_BAD_KEY }
        #expect(bad.count > 10)
        for (index, check) in bad.enumerated() {
            for count in [1, 8, 16] {
                var batch: [SignatureCase] = []
                for _ in 0..<count { batch.append(try maker.ordinary(.none)) }
                #expect(equipped.knownOutcomes(of: batch) != nil)
                batch[index % count] = check
                #expect(equipped.knownOutcomes(of: batch) == nil, "\(check.description), \(count) keys")
            }
        }
    }
}
