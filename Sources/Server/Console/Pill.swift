import Collaboration
import Core
import Foundation

/// Attribution as a pill: who has shared something. Below it stand the conversations and the menu of a real one, to be
/// looked at: nothing can be done here.
enum Pill {
    /// A circle with the initials of a name. Pictures of people are elsewhere, and nothing is loaded from there.
    static func face(_ name: String?) -> Markup {
        let words = (name ?? "").split(whereSeparator: \.isWhitespace).compactMap {
            $0.first { $0.isLetter || $0.isNumber }
        }
        let initials = String(words.prefix(2)).uppercased()
        return "<span class=\"face\" aria-hidden=\"true\">\(initials.isEmpty ? "?" : initials)</span>"
    }

    /// One pill with a face for each sharer's name, the summary and the pin; then the conversations and the menu.
    static func view(of details: AttributionDetails) -> Markup {
        var names: [String] = []
        for name in details.attributions.compactMap(\.sharer?.name) where !names.contains(name) { names.append(name) }
        let faces = names.isEmpty ? [face(nil)] : names.map { face($0) }
        let pin: Markup = details.isPinned ? " <span class=\"badge\">pinned</span>" : ""
        let titles = details.menu.map { "<span>\(Markup.name($0.title))</span>" as Markup }
        let summary = Markup.name(details.summary, or: "From somebody")
        return """
            <div class="attribution"><p class="pill">\(faces) <span>\(summary)</span>\(pin)</p>\
            \(conversations(details.attributions))<p class="menu">Menu: \(titles)</p></div>
            """
    }

    private static func conversations(_ attributions: [Attribution]) -> Markup {
        let items = attributions.map { attribution -> Markup in
            let place = Markup.name(attribution.conversation?.name, or: "a conversation without a name")
            return """
                <li>\(Markup.name(attribution.sharer?.name, or: "somebody")) in \(place) \
                <small>\(Markup.time(attribution.date))</small></li>
                """
        }
        // The attribution brings no more, and does not say how many there are.
        let isFull = attributions.count >= Limits.attributionsPerItemMax
        let rest: Markup = isFull ? "<li>No more than \(attributions.count) are listed.</li>" : ""
        return "<ul class=\"conversations\">\(items)\(rest)</ul>"
    }
}
