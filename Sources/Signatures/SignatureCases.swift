import CKernels
import Core

/// One signature with libcrypto's outcome.
struct SignatureCase: Sendable {
    let name: String
    /// X9.63, 33 or 65 bytes.
    var point: [UInt8]
    /// 32 big-endian bytes each.
    var r, s, digest: [UInt8]
    /// Valid, invalid or bad key.
    var expected = RG_P256_INVALID
    /// Whether a kernel may answer "undecided": two points of its sum may be equal or opposite, or a part of the sum
    /// may be at infinity.
    var isExceptional = false

    /// Whether this outcome of a kernel is right for the case.
    func allows(_ outcome: UInt8) -> Bool {
        UInt32(outcome) == expected.rawValue || isExceptional && UInt32(outcome) == RG_P256_UNDECIDED.rawValue
    }

    /// Everything that is needed to repeat the case.
    var description: String {
        "\(name): point \(point.hexadecimal) r \(r.hexadecimal) s \(s.hexadecimal) digest \(digest.hexadecimal)"
    }
}

/// Makes ordinary and chosen signatures, with libcrypto's outcomes. The same seed gives the same signatures.
struct SignatureCases {
    let library: CurveLibrary
    let random: RandomSource
    private let keys: [Key]
    private let nonces: [Nonce]
    private let orderBytes: [UInt8]

    private struct Key {
        let scalar: Integer
        let uncompressed, compressed: [UInt8]
    }

    private struct Nonce {
        let r, inverse: Integer
    }

    /// Throws `internalFault` when libcrypto can't do it; so do all functions here.
    init(seed: UInt64, keys keyCount: Int, nonces nonceCount: Int) throws(ServiceError) {
        let library = try CurveLibrary()
        let random = RandomSource.seeded(seed)
        self.library = library
        self.random = random
        var keys: [Key] = [], nonces: [Nonce] = []
        for _ in 0..<keyCount {
            let scalar = try library.reduced(Integer(random.bytes(40)))
            let point = try Self.known(library.multiple(scalar))
            keys.append(Key(scalar: scalar, uncompressed: point, compressed: try library.reencoded(point)))
        }
        for _ in 0..<nonceCount {
            let k = try library.reduced(Integer(random.bytes(40)))
            let r = try library.reduced(Integer(Array(Self.known(library.multiple(k))[1...32])))
            nonces.append(Nonce(r: r, inverse: try library.inverse(k)))
        }
        self.keys = keys
        self.nonces = nonces
        orderBytes = library.order.bytes ?? []
    }

    private static func known<T>(_ value: T?) throws(ServiceError) -> T {
        guard let value else { throw libcryptoFault("make a case") }
        return value
    }

    private func bytes(_ value: Integer) throws(ServiceError) -> [UInt8] { try Self.known(value.bytes) }

    private func below(_ bound: Int) -> Int {
        Int(random.bytes(4).reduce(0) { $0 << 8 | UInt32($1) } % UInt32(bound))
    }

    /// Makes a number from 1 to n - 1.
    func scalar() throws(ServiceError) -> Integer { try library.reduced(Integer(random.bytes(40))) }

    /// Returns the cases in random order.
    func shuffled(_ cases: [SignatureCase]) -> [SignatureCase] {
        var shuffled = cases
        for end in stride(from: cases.count, to: 1, by: -1) { shuffled.swapAt(end - 1, below(end)) }
        return shuffled
    }

    /// Returns the case with libcrypto's outcome.
    private func judged(_ check: SignatureCase) throws(ServiceError) -> SignatureCase {
        var judged = check
        judged.expected = try library.outcome(of: check)
        judged.isExceptional = check.isExceptional || isZero(check.digest)
        return judged
    }

    /// Whether the digest is 0 modulo n. The generator's part of the sum is then at infinity.
    private func isZero(_ digest: [UInt8]) -> Bool {
        digest == orderBytes || digest.allSatisfy { $0 == 0 }
    }

    // MARK: Ordinary signatures and their mutations

    /// What can be changed in a signature. About half of the signatures are not mutated; the mutations are equally
    /// probable.
    enum Mutation: String, CaseIterable {
        case none, bitOfR, bitOfS, bitOfDigest, bitOfX, bitOfY, otherParity, otherKey, otherEncoding
        case zeroR, zeroS, orderR, orderS, nearOrderR, nearOrderS, onesR, onesS
        case mirroredS, zeroDigest, onesDigest, swapped, randomR, randomS, smallR
    }

    /// Makes a random signature with a random key.
    func ordinary() throws(ServiceError) -> SignatureCase {
        let mutations = Mutation.allCases
        return try ordinary(below(2) == 0 ? .none : mutations[below(mutations.count)])
    }

    /// Makes a random signature with that mutation.
    func ordinary(_ mutation: Mutation) throws(ServiceError) -> SignatureCase {
        let key = keys[below(keys.count)], nonce = nonces[below(nonces.count)]
        let digest = random.bytes(32)
        let s = try library.product(
            nonce.inverse, library.sum(library.product(nonce.r, key.scalar), Integer(digest)))
        let isCompressed = below(2) == 0
        var check = SignatureCase(
            name: mutation.rawValue, point: isCompressed ? key.compressed : key.uncompressed,
            r: try bytes(nonce.r), s: try bytes(s), digest: digest)
        try mutate(&check, mutation)
        return try judged(check)
    }

    private func mutate(_ check: inout SignatureCase, _ mutation: Mutation) throws(ServiceError) {
        let bit = UInt8(1) << UInt8(below(8)), byte = below(32)
        switch mutation {
        case .none: break
        case .bitOfR: check.r[byte] ^= bit
        case .bitOfS: check.s[byte] ^= bit
        case .bitOfDigest: check.digest[byte] ^= bit
        case .bitOfX: check.point[1 + byte] ^= bit
        case .bitOfY: check.point[check.point.count == 65 ? 33 + byte : 1 + byte] ^= bit
        case .otherParity: if check.point.count == 33 { check.point[0] ^= 1 } else { check.point[64] ^= 1 }
        case .otherKey: check.point = keys[below(keys.count)].uncompressed
        case .otherEncoding: check.point = try library.reencoded(check.point)
        case .zeroR: check.r = [UInt8](repeating: 0, count: 32)
        case .zeroS: check.s = [UInt8](repeating: 0, count: 32)
        case .orderR: check.r = orderBytes
        case .orderS: check.s = orderBytes
        case .nearOrderR: check.r = try bytes(library.difference(Integer(), Integer(UInt(1 + below(3)))))
        case .nearOrderS: check.s = try bytes(library.difference(Integer(), Integer(UInt(1 + below(3)))))
        case .onesR: check.r = [UInt8](repeating: 0xff, count: 32)
        case .onesS: check.s = [UInt8](repeating: 0xff, count: 32)
        case .mirroredS: check.s = try bytes(library.difference(Integer(), Integer(check.s)))
        case .zeroDigest: check.digest = [UInt8](repeating: 0, count: 32)
        case .onesDigest: check.digest = [UInt8](repeating: 0xff, count: 32)
        case .swapped: swap(&check.r, &check.s)
        case .randomR: check.r = random.bytes(32)
        case .randomS: check.s = random.bytes(32)
        case .smallR: check.r = [UInt8](repeating: 0, count: 31) + [UInt8(1 + below(255))]
        }
    }

    // MARK: Chosen scalars

    /// Makes a valid and an invalid signature whose verification computes u1 G + u2 Q. Makes only an invalid one when
    /// that sum is at infinity. u2 must not be 0.
    func chosen(
        _ name: String, _ q: [UInt8], _ u1: Integer, _ u2: Integer, isExceptional: Bool
    ) throws(ServiceError) -> [SignatureCase] {
        // s = r / u2 and e = u1 s hold for every r.
        func check(_ name: String, r: Integer) throws(ServiceError) -> SignatureCase {
            let s = try library.product(r, library.inverse(u2))
            return try judged(
                SignatureCase(
                    name: name, point: q, r: try bytes(r), s: try bytes(s),
                    digest: try bytes(library.product(u1, s)), isExceptional: isExceptional))
        }
        let forged = try check(name + ", forged", r: scalar())
        guard let sum = try library.sum(u1, q, u2) else { return [forged] }
        let r = try library.reduced(Integer(Array(sum[1...32])))
        return r.isZero ? [forged] : [try check(name, r: r), forged]
    }

    /// Finds a key and a digest for which r and s are a signature whose nonce's point is R: Q = (s R - e G) / r.
    private func fitted(
        _ name: String, nonce: [UInt8], r: Integer, s: Integer
    ) throws(ServiceError) -> SignatureCase {
        let digest = random.bytes(32)
        let inverse = try library.inverse(r)
        let e = try library.difference(Integer(), library.product(Integer(digest), inverse))
        let q = try Self.known(library.sum(e, nonce, library.product(s, inverse)))
        return try judged(
            SignatureCase(name: name, point: q, r: try bytes(library.reduced(r)), s: try bytes(s), digest: digest))
    }

    // MARK: Small r

    /// Finds the next `count` points of the curve whose x is above `start`, or below it.
    private func points(
        above start: Integer, _ count: Int, isBelow: Bool = false
    ) throws(ServiceError) -> [(x: Integer, point: [UInt8])] {
        var found: [(Integer, [UInt8])] = []
        var offset: UInt = 1
        while found.count < count {
            let distance = try Integer(offset)
            let x = try isBelow ? library.plainDifference(start, distance) : library.plainSum(start, distance)
            let point = [2 + UInt8(below(2))] + (try bytes(x))
            if library.isPoint(point) { found.append((x, point)) }
            offset += 1
        }
        return found
    }

    /// Makes signatures around p - n. An r below it stands for the x coordinates r and r + n, every other r for itself
    /// alone. Some are valid because x(R) = r, some because x(R) = r + n, and some are invalid.
    func smallR() throws(ServiceError) -> [SignatureCase] {
        // p - n is p mod n.
        let limit = try library.reduced(library.prime), one = try Integer(1)
        var cases: [SignatureCase] = []
        /// Adds a signature whose nonce has this point. Its key is made to fit.
        func add(_ name: String, _ nonce: [UInt8], _ r: Integer) throws(ServiceError) {
            cases.append(try fitted(name, nonce: nonce, r: r, s: scalar()))
        }
        for (name, r) in [
            ("1", one), ("p - n - 1", try library.plainDifference(limit, one)), ("p - n", limit),
            ("p - n + 1", try library.plainSum(limit, one)), ("n - 1", try library.plainDifference(library.order, one)),
        ] {
            try add("r = \(name), x(R) is another", Self.known(library.multiple(scalar())), r)
        }
        for (x, point) in try points(above: library.prime, 2, isBelow: true) {
            try add("x(R) = r + n, almost p", point, library.plainDifference(x, library.order))
        }
        // Long numbers, so that r + n has carries.
        for _ in 0..<6 {
            let start = try library.plainSum(library.order, Integer(random.bytes(15)))
            for (x, point) in try points(above: start, 1) {
                try add("x(R) = r + n, long", point, library.plainDifference(x, library.order))
            }
            for (x, point) in try points(above: Integer(random.bytes(15)), 1) { try add("x(R) = r, long", point, x) }
        }
        for (name, bound, isBelow) in [
            ("x(R) = r, almost p - n", limit, true), ("x(R) = r, above p - n", limit, false),
            ("x(R) = r, almost n", library.order, true),
        ] {
            for (x, point) in try points(above: bound, 2, isBelow: isBelow) { try add(name, point, x) }
        }
        // Here r + n is x(R) modulo p, but it is not below p.
        try add("x(R) = 0 = r + n - p", [2] + [UInt8](repeating: 0, count: 32), limit)
        for (x, point) in try points(above: Integer(), 3) {
            try add("x(R) = r + n - p", point, library.plainSum(limit, x))
        }
        return cases
    }

    // MARK: Ranges

    /// Makes signatures at the bounds of r, s and x(R).
    func ranges() throws(ServiceError) -> [SignatureCase] {
        var cases: [SignatureCase] = []
        for mutation in [
            Mutation.zeroR, .zeroS, .orderR, .orderS, .nearOrderR, .nearOrderS, .onesR, .onesS, .mirroredS,
            .zeroDigest, .onesDigest, .swapped, .smallR,
        ] { cases.append(try ordinary(mutation)) }

        func changed(
            _ check: SignatureCase, _ name: String, _ change: (inout SignatureCase) -> Void
        ) throws(ServiceError) -> SignatureCase {
            var other = SignatureCase(
                name: name, point: check.point, r: check.r, s: check.s, digest: check.digest)
            change(&other)
            return try judged(other)
        }
        for (x, point) in try points(above: library.order, 3) {
            let check = try fitted("x(R) = r + n", nonce: point, r: x, s: scalar())
            let whole = try bytes(x)
            cases += try [check, changed(check, "r = x(R) above n") { $0.r = whole }]
        }
        for (x, point) in try points(above: Integer(), 3) {
            let check = try fitted("x(R) = r, small", nonce: point, r: x, s: scalar())
            let added = try bytes(library.plainSum(x, library.order))
            cases += try [check, changed(check, "r with n added") { $0.r = added }]
        }
        for small in [1, 2, 0xffff_ffff] as [UInt] {
            let nonce = try Self.known(library.multiple(scalar()))
            let r = try library.reduced(Integer(Array(nonce[1...32])))
            let check = try fitted("s small", nonce: nonce, r: r, s: Integer(small))
            let added = try bytes(library.plainSum(Integer(small), library.order))
            cases += try [check, changed(check, "s with n added") { $0.s = added }]
        }
        return cases
    }

    // MARK: Keys

    /// A point of the curve with y = 1.
    private static let lowPoint: [UInt8] = [
        0x8d, 0x01, 0x77, 0xeb, 0xab, 0x9c, 0x6e, 0x9e, 0x10, 0xdb, 0x6d, 0xd0, 0x95, 0xdb, 0xac, 0x0d,
        0x63, 0x75, 0xe8, 0xa9, 0x7b, 0x70, 0xf6, 0x11, 0x87, 0x5d, 0x87, 0x7f, 0x00, 0x69, 0xd2, 0xc7,
    ]

    /// A point of the curve whose x is just above 2^256 - p in Montgomery form.
    private static let highPoint: [UInt8] = [
        0x04,
        0x1f, 0xff, 0xff, 0xff, 0xd0, 0x00, 0x00, 0x00, 0x4f, 0xff, 0xff, 0xff, 0xd0, 0x00, 0x00, 0x00,
        0x20, 0x00, 0x00, 0x00, 0x2f, 0xff, 0xff, 0xff, 0xe0, 0x00, 0x00, 0x00, 0x30, 0x00, 0x00, 0x00,
        0x3a, 0xec, 0xd9, 0xd4, 0xdf, 0x8d, 0xc1, 0x08, 0xfe, 0x39, 0xc5, 0x24, 0x8e, 0x45, 0x87, 0xca,
        0x1f, 0xd2, 0x3d, 0x0d, 0x22, 0x1d, 0xa8, 0x75, 0xb5, 0xfa, 0x78, 0x3e, 0x6a, 0xb9, 0x2f, 0xe3,
    ]

    /// Makes keys at the bounds of what is valid. Everything but the key is valid in these signatures.
    func boundaryKeys() throws(ServiceError) -> [SignatureCase] {
        var cases: [SignatureCase] = []
        /// Adds a signature by `key`. `written` replaces the key's encoding in it.
        func add(_ name: String, _ key: [UInt8], as written: [UInt8]? = nil) throws(ServiceError) {
            guard let valid = try chosen(name, key, scalar(), scalar(), isExceptional: false).first else { return }
            var check = valid
            check.point = written ?? key
            cases.append(try judged(check))
        }
        let zero = [UInt8](repeating: 0, count: 32), one = zero.dropLast() + [1]
        let prime = try bytes(library.prime)
        let nearPrime = try bytes(library.plainSum(library.prime, Integer(1)))
        for parity in [2, 3] as [UInt8] {
            let compressed = [parity] + zero
            let uncompressed = try library.reencoded(compressed)
            try add("x = 0, compressed", compressed)
            try add("x = 0", uncompressed)
            try add("x = p instead of 0, compressed", compressed, as: [parity] + prime)
            try add("x = p instead of 0", uncompressed, as: [4] + prime + uncompressed[33...])
        }
        let low = [4] + Self.lowPoint + one
        try add("y = 1", low)
        try add("y = p + 1 instead of 1", low, as: [4] + Self.lowPoint + nearPrime)
        try add("y = p - 1 instead of 1", low, as: [4] + Self.lowPoint + prime.dropLast() + [0xfe])
        // For about half of all x, the curve has a point.
        for x in 1...10 as ClosedRange<UInt> {
            let above = try bytes(library.plainSum(library.prime, Integer(x)))
            let compressed = try [2] + bytes(Integer(x))
            guard library.isPoint(compressed) else {
                cases.append(try judged(relabelled(ordinary(.none), "no y for this x", point: compressed)))
                continue
            }
            let uncompressed = try library.reencoded(compressed)
            try add("x small", compressed)
            try add("x with p added, compressed", compressed, as: [2] + above)
            try add("x with p added", uncompressed, as: [4] + above + uncompressed[33...])
        }
        // Its x times 2^260 is just above 2^256 modulo p. A table row could not hold that number if it were not fully
        // reduced.
        for _ in 0..<3 { try add("x near 2^256 in Montgomery form", Self.highPoint) }
        let ones = [UInt8](repeating: 0xff, count: 32)
        let ordinary = keys[0].uncompressed
        try add("x all ones", ordinary, as: [4] + ones + ordinary[33...])
        try add("y all ones", ordinary, as: Array(ordinary[..<33]) + ones)
        try add("x and y zero", ordinary, as: [4] + zero + zero)
        try add("x and y swapped", ordinary, as: [4] + ordinary[33...] + ordinary[1..<33])
        try add("off the curve by one bit", ordinary, as: ordinary.dropLast() + [ordinary[64] ^ 1])
        try add("all ones, compressed", ordinary, as: [3] + ones)
        try add("the opposite key", ordinary, as: [keys[0].compressed[0] ^ 1] + ordinary[1..<33])
        return cases
    }

    private func relabelled(_ check: SignatureCase, _ name: String, point: [UInt8]) -> SignatureCase {
        SignatureCase(name: name, point: point, r: check.r, s: check.s, digest: check.digest)
    }

    // MARK: Sums

    /// Makes scalars of special form, from 1 to n - 1.
    func strikingScalars() throws(ServiceError) -> [(name: String, value: Integer)] {
        var scalars: [(String, Integer)] = []
        for small in [1, 2, 3, 4, 15, 16, 17, 31, 32, 33, 34, 4095, 4096, 8191, 8192, 8193] as [UInt] {
            scalars.append(("\(small)", try Integer(small)))
            scalars.append(("n - \(small)", try library.difference(Integer(), Integer(small))))
        }
        for exponent in [13, 20, 26, 52, 65, 104, 128, 208, 240, 247, 255] {
            let power = try library.power(exponent)
            scalars.append(("2^\(exponent)", power))
            scalars.append(("2^\(exponent) - 1", try library.difference(power, Integer(1))))
            scalars.append(("2^\(exponent) + 1", try library.sum(power, Integer(1))))
        }
        for pattern in [0x0f, 0x33, 0x55, 0x7f, 0xaa, 0xff] as [UInt8] {
            let value = try library.reduced(Integer([UInt8](repeating: pattern, count: 32)))
            scalars.append(("all \([pattern].hexadecimal)", value))
        }
        return scalars
    }

    /// Makes keys that are these multiples of the generator, and their opposites.
    func relatedKeys(_ multiples: [UInt]) throws(ServiceError) -> [(name: String, point: [UInt8])] {
        var keys: [(String, [UInt8])] = []
        for multiple in multiples {
            let value = try Integer(multiple)
            keys.append(("Q = \(multiple) G", try Self.known(library.multiple(value))))
            let opposite = try library.difference(Integer(), value)
            keys.append(("Q = -\(multiple) G", try Self.known(library.multiple(opposite))))
        }
        return keys
    }

    /// Makes sums with u1 = 0, with scalars of special form, and with keys that are related to the generator. In others
    /// an addition gets two equal or two opposite points: the first addition, the last, or that of u1 G and u2 Q.
    /// `isBrief`: makes about a third of them.
    func sums(isBrief: Bool = false) throws(ServiceError) -> [SignatureCase] {
        var cases: [SignatureCase] = []
        let zero = try Integer(), one = try Integer(1)
        let stranger = keys[0].compressed

        for check in try chosen("u1 = 0", stranger, zero, scalar(), isExceptional: false) {
            var whole = check
            whole.digest = orderBytes
            cases += try [check, judged(relabelled(whole, "digest = n, \(check.name)", point: check.point))]
        }
        for (index, scalar) in try strikingScalars().enumerated() where !isBrief || index % 4 == 0 {
            let other = try self.scalar()
            let (u1, u2) =
                index % 3 == 0
                ? (scalar.value, other)
                : index % 3 == 1
                    ? (other, scalar.value)
                    : (scalar.value, scalar.value)
            cases += try chosen("scalars with \(scalar.name)", stranger, u1, u2, isExceptional: false)
        }
        for (index, key) in try relatedKeys(isBrief ? [1] : [1, 2, 3, 8191]).enumerated() {
            let u = try scalar()
            let opposite = try library.difference(zero, u)
            let point = index % 4 < 1 ? key.point : try library.reencoded(key.point)
            cases += try chosen("\(key.name), u1 = u2", point, u, u, isExceptional: true)
            cases += try chosen("\(key.name), u1 = -u2", point, opposite, u, isExceptional: true)
            cases += try chosen("\(key.name), u1 = u2 = 1", point, one, one, isExceptional: true)
            cases += try chosen("\(key.name), any scalars", point, scalar(), u, isExceptional: true)
        }
        for _ in 0..<(isBrief ? 1 : 4) { cases += try meetings() }
        return cases
    }

    /// Makes sums whose u2 has the digits of n, in every shape in which the kernels write it for a known key. Only
    /// signs in column 0 are others: that of the last digit, or all. If the last digit of u2 Q, or all of column 0,
    /// were added to the rest of u2 Q and nothing else, the points would be equal for every key.
    func repeatedOrder() throws(ServiceError) -> [SignatureCase] {
        try repeatedOrder(width: 6, columns: 4) + repeatedOrder(width: 6, columns: 2)
    }

    /// Makes these sums for digits of `width` bits in so many columns.
    private func repeatedOrder(width: Int, columns: Int) throws(ServiceError) -> [SignatureCase] {
        let digits = (256 + width - 1) / width
        // A digit is made of the bits above the lowest, and the highest bit of the highest digit is 1.
        func bit(_ index: Int) -> Int {
            index < 256 ? Int(orderBytes[31 - index / 8] >> UInt8(index % 8) & 1) : index == width * digits ? 1 : 0
        }
        let zero = try Integer()
        var (column, last) = (zero, zero)
        for place in stride(from: 0, to: digits, by: columns) {
            let window = (0..<width).reduce(0) { $0 | bit(width * place + 1 + $1) << $1 }
            let digit = 2 * window + 1 - 1 << width
            last = try library.product(Integer(UInt(abs(digit))), library.power(width * place))
            if digit < 0 { last = try library.difference(zero, last) }
            column = try library.sum(column, last)
        }
        var cases: [SignatureCase] = []
        for (name, changed) in [("the last digit", last), ("column 0", column)] {
            let twice = try library.sum(changed, changed)
            for u2 in [twice, try library.difference(zero, twice)] {
                cases += try chosen(
                    "u2 is n but for \(name), \(columns) columns", keys[cases.count % keys.count].compressed, scalar(),
                    u2,
                    isExceptional: false)
            }
        }
        return cases
    }

    /// Makes sums for a random u1 in which an addition gets two equal or two opposite points.
    func meetings() throws(ServiceError) -> [SignatureCase] {
        var cases: [SignatureCase] = []
        var u1 = try scalar()
        if try bytes(u1)[31] & 1 == 0 { u1 = try library.difference(Integer(), u1) }
        // u1 is odd, and the kernels write it in signed odd digits of 13 bits. The lowest digit is u1 mod 2^14 - 2^13.
        // The highest (the 20th) is 2 (u1 >> 248) + 1, times 2^247.
        let u1Bytes = try bytes(u1)
        let lowest = Int(u1Bytes[30] & 0x3f) << 8 | Int(u1Bytes[31])
        let first = try library.difference(Integer(UInt(lowest)), Integer(8192))
        let last = try library.product(Integer(UInt(u1Bytes[0]) * 2 + 1), library.power(247))
        let allButLast = try library.difference(u1, last)

        /// Adds the case in which u2 Q is this multiple of the generator.
        func meet(_ name: String, _ wanted: Integer) throws(ServiceError) {
            let u2 = try scalar()
            let d = try library.product(wanted, library.inverse(u2))
            guard let q = try library.multiple(d) else { return }
            cases += try chosen(name, q, u1, u2, isExceptional: true)
            // The same sum with both scalars negated.
            cases += try chosen(
                name + ", opposite", library.reencoded(q), library.difference(Integer(), u1),
                library.difference(Integer(), u2), isExceptional: true)
        }
        try meet("u2 Q = u1 G", u1)
        // The last addition cancels, and the sum is at infinity.
        try meet("u2 Q = -u1 G", library.difference(Integer(), u1))
        try meet("the first addition doubles", first)
        try meet("the first addition cancels", library.difference(Integer(), first))
        try meet("the last addition doubles", library.difference(last, allButLast))
        return cases
    }
}
