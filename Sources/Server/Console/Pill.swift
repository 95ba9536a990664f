import Collaboration
import Core
import Foundation

/// Attribution as a pill: who has shared something, and in which conversation. The menu of a real one is not drawn:
/// nothing can be done here.
enum Pill {
    /// A circle with the initials of a name. Pictures of people are elsewhere, and nothing is loaded from there.
    static func face(_ name: String) -> Markup {
        let words = name.split(whereSeparator: \.isWhitespace).compactMap { $0.first { $0.isLetter || $0.isNumber } }
        let initials = String(words.prefix(2)).uppercased()
        return "<span class=\"face\" aria-hidden=\"true\">\(initials.isEmpty ? "?" : initials)</span>"
    }

    /// The summary, and a pill for each conversation.
    static func pills(of details: AttributionDetails) -> Markup {
        let each = details.attributions.map { attribution -> Markup in
            let sharer = attribution.sharer?.name ?? "somebody"
            let place = attribution.conversation?.name ?? attribution.conversation?.identifier
            let conversation: Markup = place.map { " in \(Markup.name($0))" } ?? ""
            let pin: Markup = attribution.isPinned ? " <span class=\"badge\">pinned</span>" : ""
            return """
                <li><span class="pill">\(face(sharer))<span>\(Markup.name(sharer))\(conversation)</span>\(pin)</span> \
                <small>\(Markup.time(attribution.date))</small></li>
                """
        }
        return """
            <div class="attribution"><p>\(details.summary ?? "")</p><ul class="pills">\(each)</ul></div>
            """
    }
}
