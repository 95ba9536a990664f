import CKernels
import KernelEmulation
import KernelInternals
import TestSupport
import Testing

@testable import Signatures

/// An operation of the kernels' field, for one kind of lanes.
struct FieldOperation: Sendable, CustomTestStringConvertible {
    let index: Int
    let name: String
    /// How many lanes a vector has.
    let lanes: Int
    let lanesName: String
    let isEmulated: Bool
    let run: @convention(c) (UnsafeMutablePointer<UInt64>?, UnsafePointer<UnsafePointer<UInt64>?>?) -> Void

    var testDescription: String { "\(name), \(lanesName)" }

    private static func rows(_ operations: rg_field_operations, isEmulated: Bool) -> [FieldOperation] {
        (0..<operations.count).map { index in
            let row = operations.operation[index]
            return FieldOperation(
                index: index, name: String(cString: row.name), lanes: Int(operations.lanes),
                lanesName: String(cString: operations.name) + (isEmulated ? ", \(operations.lanes) of them" : ""),
                isEmulated: isEmulated, run: row.run)
        }
    }

    /// Those that this processor can run.
    static let all: [FieldOperation] = {
        var all = rows(rg_emulated_field_operations, isEmulated: true)
        all += rows(rg_emulated_field_operations_doubles, isEmulated: true)
        var number = 0
        while let operations = rg_field_operations_of(number, rg_cpu_features()) {
            all += rows(operations.pointee, isEmulated: false)
            number += 1
        }
        return all
    }()
}

/// The arithmetic below the formulas, with limbs that random signatures never bring: a carry that is wrong once in
/// 2^40 times would pass every other test.
struct FieldTests {
    private static let mask: UInt64 = (1 << 52) - 1

    /// All ones, a single bit, a run of either, zero or anything.
    private static func limb(_ generator: inout SeededGenerator) -> UInt64 {
        let bit = UInt64.random(in: 0..<52, using: &generator)
        switch Int.random(in: 0..<6, using: &generator) {
        case 0: return 0
        case 1: return mask
        case 2: return 1 << bit
        case 3: return mask >> bit
        case 4: return mask - 1 << bit
        default: return generator.next() & mask
        }
    }

    /// Five limbs: striking ones, or a value within 2 of a multiple of p up to 15 p.
    private static func limbs(
        _ generator: inout SeededGenerator, _ prime: Integer, _ arithmetic: borrowing IntegerArithmetic
    ) throws -> [UInt64] {
        guard Int.random(in: 0..<4, using: &generator) == 0 else { return (0..<5).map { _ in limb(&generator) & mask } }
        let multiple = try arithmetic.product(prime, Integer(UInt.random(in: 0..<16, using: &generator)))
        let value = try arithmetic.sum(multiple, Integer(UInt.random(in: 0...4, using: &generator)))
        let two = try Integer(2)
        return (value.compared(to: two) > 0 ? try arithmetic.difference(value, two) : value).digits(52, 5)
    }

    /// The value of limbs that may be negative.
    private static func value(_ limbs: [UInt64], _ arithmetic: borrowing IntegerArithmetic) throws -> Integer {
        var value = try Integer()
        for limb in limbs.reversed() {
            let signed = Int64(bitPattern: limb)
            let (shifted, term) = (try arithmetic.shifted(value, by: 52), try Integer(UInt(signed.magnitude)))
            value = signed < 0 ? try arithmetic.difference(shifted, term) : try arithmetic.sum(shifted, term)
        }
        return value
    }

    /// What is to be the result times the radix, modulo p or n.
    private static func expected(
        _ name: String, _ values: [Integer], _ arithmetic: borrowing IntegerArithmetic
    ) throws -> Integer {
        switch name {
        case "square": try arithmetic.square(of: values[0])
        case "square_plus_product":
            try arithmetic.sum(arithmetic.product(values[1], values[2]), arithmetic.square(of: values[0]))
        case "product_plus_product":
            try arithmetic.sum(arithmetic.product(values[2], values[3]), arithmetic.product(values[0], values[1]))
        case "canonical", "reduce_weakly": try arithmetic.copy(of: values[0])
        default: try arithmetic.product(values[0], values[1])
        }
    }

    @Test(
        "Products, squares and reductions of striking limbs agree with libcrypto and keep their bounds",
        arguments: FieldOperation.all)
    func operations(operation: FieldOperation) throws {
        let (name, count) = (operation.name, operation.lanes)
        let library = try CurveLibrary(), arithmetic = try IntegerArithmetic()
        let modulus = name == "montgomery_n" ? library.order : library.prime
        let radix = try library.power(name == "canonical" || name == "reduce_weakly" ? 0 : 260)
        let one = try Integer(1), slack = try library.power(230)
        var generator = SeededGenerator(seed: runSeed &+ UInt64(operation.index))
        for round in 0..<(operation.isEmulated ? 200 : 500) {
            var lanes: [[[UInt64]]] = []
            for _ in 0..<4 {
                var operand: [[UInt64]] = []
                for _ in 0..<operation.lanes { operand.append(try Self.limbs(&generator, library.prime, arithmetic)) }
                lanes.append(operand)
            }
            // `montgomery` requires operands whose product is below 2^260.
            if name.hasPrefix("montgomery") { for lane in 0..<count { lanes[1][lane][4] &= (1 << 48) - 1 } }
            let operands = lanes.map { lanes in (0..<5 * count).map { lanes[$0 % count][$0 / count] } }
            var result = [UInt64](repeating: 0, count: 5 * count)
            operands[0].withUnsafeBufferPointer { a in
                operands[1].withUnsafeBufferPointer { b in
                    operands[2].withUnsafeBufferPointer { c in
                        operands[3].withUnsafeBufferPointer { d in
                            operation.run(&result, [a.baseAddress, b.baseAddress, c.baseAddress, d.baseAddress])
                        }
                    }
                }
            }
            for lane in 0..<count {
                var values: [Integer] = []
                for operand in lanes { values.append(try Self.value(operand[lane], arithmetic)) }
                let given = try Self.value((0..<5).map { result[count * $0 + lane] }, arithmetic)
                let whole = try Self.expected(name, values, arithmetic)
                // From 0 to a b / radix + modulus; below the modulus, or to it and 2^230 more, for the reductions.
                let bound =
                    switch name {
                    case "canonical": try arithmetic.difference(modulus, one)
                    case "reduce_weakly": try arithmetic.sum(modulus, slack)
                    default: try arithmetic.sum(arithmetic.quotient(whole, radix), modulus)
                    }
                let left = try arithmetic.product(given, radix, modulo: modulus)
                let right = try arithmetic.residue(whole, modulo: modulus)
                let place: Comment = "\(name), seed \(runSeed), round \(round), lane \(lane)"
                #expect(left.compared(to: right) == 0, place)
                #expect(!given.isNegative && given.compared(to: bound) <= 0, place)
            }
        }
    }

    /// A value of the field of words, below p or below 2^256: striking words, or a value within 2 of p.
    private static func words(
        _ generator: inout SeededGenerator, isBelowPrime: Bool, _ prime: Integer,
        _ arithmetic: borrowing IntegerArithmetic
    ) throws -> Integer {
        var value = try Integer()
        if Int.random(in: 0..<4, using: &generator) == 0 {
            let near = try arithmetic.sum(prime, Integer(UInt.random(in: 0...4, using: &generator)))
            value = try arithmetic.difference(near, Integer(2))
        } else {
            for _ in 0..<4 {
                // 52 bits of one striking limb, and 12 of another.
                let word = limb(&generator) << 12 | limb(&generator) & 0xfff
                value = try arithmetic.sum(arithmetic.shifted(value, by: 64), Integer(UInt(word)))
            }
        }
        return isBelowPrime ? try arithmetic.residue(value, modulo: prime) : value
    }

    /// What an operation on words is to be times the power of 2, modulo p.
    private static func expectedOfWords(
        _ name: String, _ values: [Integer], _ prime: Integer, _ arithmetic: borrowing IntegerArithmetic
    ) throws -> (value: Integer, power: Int) {
        let inverseRadix = try arithmetic.inverse(of: arithmetic.shifted(Integer(1), by: 256), modulo: prime)
        return switch name {
        case "sum": (try arithmetic.sum(values[0], values[1]), 0)
        case "difference": (try arithmetic.difference(values[0], values[1]), 0)
        case "row": (try arithmetic.shifted(values[0], by: 4), 0)
        case "coordinate": (try arithmetic.copy(of: values[0]), 4)
        case "integer": (try arithmetic.shifted(values[0], by: 256), 0)
        case "residue": (try arithmetic.copy(of: values[0]), 0)
        case "parity":
            // Outside of Montgomery form.
            (try Integer(UInt(arithmetic.product(values[0], inverseRadix, modulo: prime).digits(1, 1)[0])), 0)
        default: (try expected(name, values, arithmetic), 256)
        }
    }

    @Test("Operations on striking words agree with libcrypto and stay below p", arguments: 0..<rg_word_operation_count)
    func wordOperations(index: Int) throws {
        let operation = rg_word_operations[index], name = String(cString: operation.name)
        let library = try CurveLibrary(), arithmetic = try IntegerArithmetic()
        var generator = SeededGenerator(seed: runSeed &+ UInt64(index))
        for round in 0..<2000 {
            let isBelowPrime = name != "coordinate" && name != "integer"
            var values: [Integer] = []
            for _ in 0..<4 {
                values.append(
                    try Self.words(&generator, isBelowPrime: isBelowPrime, library.prime, arithmetic))
            }
            let operands = values.flatMap { $0.digits(64, 4) }
            var result = [UInt64](repeating: 0, count: 4)
            operands.withUnsafeBufferPointer { words in
                let start = words.baseAddress
                operation.run(&result, [0, 4, 8, 12].map { place in start.map { $0 + place } })
            }
            var given = try Integer()
            for word in result.reversed() {
                given = try arithmetic.sum(arithmetic.shifted(given, by: 64), Integer(UInt(word)))
            }
            let place: Comment = "\(name), seed \(runSeed), round \(round)"
            #expect(given.compared(to: library.prime) < 0, place)
            let (whole, power) = try Self.expectedOfWords(name, values, library.prime, arithmetic)
            let left = try arithmetic.residue(arithmetic.shifted(given, by: power), modulo: library.prime)
            #expect(try left.compared(to: arithmetic.residue(whole, modulo: library.prime)) == 0, place)
        }
    }
}
