import Core
import Verification

/// The way from a device's key to the root hash, as SVG that stands in a page: the leaf at the bottom, the root hash at
/// the top. At each level the node of the way and its sibling stand on their sides, as the index's bit says.
struct ProofPicture {
    let leaf: Digest
    let levels: [Explanation.Level]
    /// Whether the root hash is a participant's; `nil`: it is not known.
    let isMember: Bool?

    private static let width = 380
    private static let boxWidth = 142
    private static let boxHeight = 40
    /// Between the tops of two levels.
    private static let step = 74
    private static let (left, right, middle) = (54, 232, 143)
    private static let margin = 4

    var markup: Markup {
        let rows = levels.count
        let height = rows * Self.step + Self.boxHeight + 2 * Self.margin
        let root = levels.last?.parent ?? leaf
        let drawn = levels.enumerated().map { number, level in self.level(number, level, rows: rows) }
        let bits = levels.reversed().map { $0.isRight ? "1" : "0" }.joined()
        let words =
            rows == 0
            ? "The leaf is the root hash: there is no sibling."
            : "\(rows) levels from the leaf to the root hash. The index's bits, the root's first: \(bits)."
        let kind: Markup =
            switch isMember {
            case true?: "root member"
            case false?: "root stranger"
            case nil: "root"
            }
        let label: Markup = rows == 0 ? "leaf and root hash" : "root hash"
        return """
            <svg class="tree" viewBox="0 0 \(Self.width) \(height)" role="img" aria-label="\(words)">\
            \(drawn)\(Self.box(root, label, kind, x: Self.middle, y: Self.margin))</svg>
            """
    }

    /// Where the boxes of a level are, the leaf's being the lowest.
    private static func top(of level: Int, rows: Int) -> Int { margin + (rows - level) * step }

    /// The pair of a level, and the lines to its parent.
    private func level(_ number: Int, _ level: Explanation.Level, rows: Int) -> Markup {
        let y = Self.top(of: number, rows: rows)
        let (nodeX, siblingX) = level.isRight ? (Self.right, Self.left) : (Self.left, Self.right)
        let isLast = number == rows - 1
        let parentX = isLast ? Self.middle : levels[number + 1].isRight ? Self.right : Self.left
        let half = Self.boxWidth / 2
        let parentBottom = y - Self.step + Self.boxHeight
        func line(_ x: Int, _ kind: Markup) -> Markup {
            """
            <path class="\(kind)" d="M\(x + half) \(y)C\(x + half) \(y - 20) \(parentX + half) \(parentBottom + 20) \
            \(parentX + half) \(parentBottom)"/>
            """
        }
        let label: Markup = number == 0 ? "leaf" : "parent"
        return """
            \(line(siblingX, "edge"))\(line(nodeX, "edge way"))\
            \(Self.box(level.sibling, "sibling", "sibling", x: siblingX, y: y))\
            \(Self.box(level.node, label, number == 0 ? "way leaf" : "way", x: nodeX, y: y))\
            <text class="level" x="0" y="\(y + 17)">level \(number)</text>\
            <text class="level" x="0" y="\(y + 32)">bit \(level.isRight ? 1 : 0)</text>
            """
    }

    private static func box(_ digest: Digest, _ label: Markup, _ kind: Markup, x: Int, y: Int) -> Markup {
        let digits = digest.description
        return """
            <g class="\(kind)"><rect x="\(x)" y="\(y)" width="\(boxWidth)" height="\(boxHeight)" rx="6"/>\
            <text class="label" x="\(x + 10)" y="\(y + 15)">\(label)</text>\
            <text class="hash" x="\(x + 10)" y="\(y + 32)">\(String(digits.prefix(8)))…\(String(digits.suffix(4)))\
            </text></g>
            """
    }
}
