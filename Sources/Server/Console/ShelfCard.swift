import Collaboration
import Core
import Foundation

/// An item of a shelf: a preview with thumbnail, title and subtitle, and its attribution.
struct ShelfCard {
    let item: Highlight
    let attribution: AttributionDetails
    let account: Account

    var markup: Markup {
        let badges: [Markup] =
            (item.isSuggested ? ["<span class=\"badge\">suggested</span>"] : [])
            + (item.isPinned ? ["<span class=\"badge\">pinned</span>"] : [])
        let link: Markup = "<code>\(item.url.absoluteString)</code>"
        let subtitle = Markup.name(item.subtitle, or: "")
        return """
            <li class="card">\(picture)<div class="text"><h3>\(Markup.name(item.title, or: link))</h3>
            \(subtitle.html.isEmpty ? "" : "<p>\(subtitle)</p>" as Markup)
            <p class="note">\(link)<br>\(Markup.name(item.app)) · \
            \(Markup.time(item.date)) \(badges)</p>\(Pill.view(of: attribution))</div></li>
            """
    }

    /// What the service has of the picture. What is elsewhere is not loaded, and what a browser may not know is named.
    private var picture: Markup {
        switch item.thumbnail {
        case .stored(let hash, let type, _) where ShelfCard.shown.contains(type):
            let fields = [("account", account.name), ("url", item.url.absoluteString), ("hash", hash.description)]
            let query = fields.map { "\($0.0)=\(FormFields.encoded($0.1))" }.joined(separator: "&")
            return "<img class=\"thumbnail\" src=\"/thumbnail?\(query)\" alt=\"\" width=\"96\" height=\"96\">"
        case .stored(_, let type, _): return "<div class=\"thumbnail none\">\(type.rawValue)</div>"
        case .link: return "<div class=\"thumbnail none\">picture elsewhere, not loaded</div>"
        case nil: return "<div class=\"thumbnail none\">no picture</div>"
        }
    }

    /// What every browser decodes.
    private static let shown: Set<ImageType> = [.png, .jpeg, .gif, .webp]
}
