import Foundation

/// Which bodies PROTOCOL.md allows, written from it alone.
enum RequestGrammar {
    /// Whether a service reads a request of this operation with this body.
    static func accepts(_ operation: UInt16, _ body: [UInt8]) -> Bool {
        var parts = InputParts(body)
        guard isRead(operation, &parts, bodyBytes: body.count) else { return false }
        return parts.isAtEnd
    }

    private static func isRead(_ operation: UInt16, _ parts: inout InputParts, bodyBytes: Int) -> Bool {
        switch operation {
        case 0x01: return hello(&parts)
        case 0x02: return bodyBytes <= 64 && parts.take(bodyBytes) != nil
        case 0x03: return isNumber(&parts, 4, 0...4096)
        case 0x10: return proofs(&parts, flags: [0, 1], isSigned: true)
        case 0x11: return proofs(&parts, flags: [0, 1], isSigned: false)
        case 0x81: return proofs(&parts, flags: [0, 1, 2, 3], isSigned: true)
        case 0x82: return grants(&parts)
        case 0x20, 0x21: return parts.take(16) != nil && collaboration(&parts) && digests(&parts)
        case 0x22: return collaboration(&parts) && digests(&parts)
        case 0x23: return listRoots(&parts)
        case 0x24: return collaboration(&parts)
        case 0x30: return parts.take(16) != nil && collaboration(&parts) && policy(&parts)
        case 0x31: return parts.take(16) != nil && collaboration(&parts)
        case 0x32:
            guard isNumber(&parts, 4, 1...1024), let start = parts.short() else { return false }
            return start.isEmpty || isIdentifier(start)
        case 0x40: return true
        case 0x41: return parts.take(8) != nil && isNumber(&parts, 4, 1...1024)
        case 0x42: return parts.take(8) != nil
        case 0x43: return parts.take(48) != nil
        case 0x80: return collaborate(&parts)
        default: return false
        }
    }

    private static func isNumber(_ parts: inout InputParts, _ bytes: Int, _ range: ClosedRange<UInt64>) -> Bool {
        parts.number(bytes).map { range.contains($0) } ?? false
    }

    private static func hello(_ parts: inout InputParts) -> Bool {
        guard let lowest = parts.number(1), let highest = parts.number(1), parts.number(2) == 0, lowest <= highest
        else {
            return false
        }
        if parts.isAtEnd { return true }
        return parts.short().map { !$0.isEmpty } ?? false
    }

    /// 1 to 128 bytes of UTF-8 without control characters.
    private static func isIdentifier(_ bytes: [UInt8]) -> Bool {
        (1...128).contains(bytes.count) && bytes.allSatisfy { $0 >= 0x20 && $0 != 0x7f }
            && String(bytes: bytes, encoding: .utf8) != nil
    }

    private static func collaboration(_ parts: inout InputParts) -> Bool {
        parts.short().map(isIdentifier) ?? false
    }

    private static func digests(_ parts: inout InputParts) -> Bool {
        guard let count = parts.number(4), count <= 32_768 else { return false }
        return parts.take(Int(count) * 32) != nil
    }

    private static func listRoots(_ parts: inout InputParts) -> Bool {
        guard collaboration(&parts), isNumber(&parts, 4, 1...4096), let hasStart = parts.number(1) else { return false }
        return hasStart == 0 || hasStart == 1 && parts.take(32) != nil
    }

    private static func policy(_ parts: inout InputParts) -> Bool {
        switch (parts.number(1), parts.number(4)) {
        case (1, 0): true
        case (2, let seconds?): (1...604_800).contains(seconds)
        default: false
        }
    }

    private static func collaborate(_ parts: inout InputParts) -> Bool {
        guard parts.take(16) != nil, let name = parts.short(), name.count <= 64,
            String(bytes: name, encoding: .utf8) != nil
        else { return false }
        let count = parts.rest.count
        return count <= 256 << 10 && parts.take(count) != nil
    }

    /// The fields with which a batch begins: the numbers of collaborations and items.
    private static func head(
        _ parts: inout InputParts, flags: Set<UInt64>
    ) -> (collaborations: Int, items: Int)? {
        guard parts.take(8) != nil, let given = parts.number(1), flags.contains(given), parts.number(1) == 0,
            let collaborations = parts.number(2), collaborations <= 4096, let items = parts.number(4), items <= 4096
        else { return nil }
        return (Int(collaborations), Int(items))
    }

    /// The identifiers of a verify may be invalid: that gives proofs a verdict.
    private static func proofs(_ parts: inout InputParts, flags: Set<UInt64>, isSigned: Bool) -> Bool {
        guard let head = head(&parts, flags: flags) else { return false }
        for _ in 0..<head.collaborations where parts.short() == nil { return false }
        for _ in 0..<head.items {
            guard let position = parts.number(2), position < head.collaborations, let hashes = parts.number(1) else {
                return false
            }
            var lengths = [32 * Int(hashes)]
            if isSigned {
                guard parts.take(9) != nil, let key = parts.number(1), let signature = parts.number(1),
                    let data = parts.number(2)
                else { return false }
                lengths += [Int(key), Int(signature), Int(data)]
            } else {
                guard let key = parts.number(1), parts.take(8) != nil else { return false }
                lengths.append(Int(key))
            }
            guard parts.take(lengths.reduce(0, +)) != nil else { return false }
        }
        return true
    }

    private static func grants(_ parts: inout InputParts) -> Bool {
        guard let head = head(&parts, flags: [0, 2]) else { return false }
        for _ in 0..<head.collaborations where !collaboration(&parts) { return false }
        for _ in 0..<head.items {
            guard let position = parts.number(2), position < head.collaborations, let flags = parts.number(1),
                flags <= 1, parts.number(1) == 0, let key = parts.take(16), parts.take(112) != nil
            else { return false }
            if flags == 0, key.contains(where: { $0 != 0 }) { return false }
        }
        return true
    }
}
