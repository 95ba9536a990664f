import Collaboration
import Core

/// What the shelves of a collaboration's people tell about who has shared its link.
struct LinkAttribution {
    /// For the accounts whose shelves have the link.
    var found: [(account: Account, details: AttributionDetails)] = []
    /// Accounts that were looked at, and those that are known of the present people of the page.
    var looked = 0
    var known = 0
    /// Whether there is a link at all: without `--link-base` there is none.
    var hasLink = true

    var markup: Markup {
        guard hasLink else { return "<p class=\"empty\">There is no link, so it is on no shelf.</p>" }
        guard known > 0 else {
            return "<p class=\"empty\">Of no present participant in the table below an account is known.</p>"
        }
        let items = found.map { entry -> Markup in
            let whose = Markup.link(.name(entry.account.name), to: "/shelf", [("account", entry.account.name)])
            return "<li>On the shelf of \(whose): \(Pill.view(of: entry.details))</li>"
        }
        let list: Markup =
            items.isEmpty
            ? "<p class=\"empty\">The link is on none of the shelves that were looked at.</p>"
            : "<ul class=\"attributions\">\(items)</ul>"
        return """
            \(list)<p class="note">Shelves that were looked at: \(looked) of \(known), those of \
            participants in the table below whose accounts are known. Those of removed participants are not \
            looked at.</p>
            """
    }
}
