/// What all pages of the console have around their contents, and the fields of their responses.
struct ConsoleFrame: Sendable {
    /// The pages that the head of each page links to, with their titles.
    let pages: [(path: String, title: String)]

    /// A page. `path`: which of the pages is marked as the present one. `refreshes`: whether the script replaces the
    /// contents again and again.
    func page(
        _ title: String, at path: String, status: HTTPResponse.Status = .ok, refreshes: Bool = false,
        _ contents: Markup
    ) -> HTTPResponse {
        let links = pages.map { page -> Markup in
            let mark: Markup = page.path == path ? " aria-current=\"page\"" : ""
            return "<li><a href=\"\(page.path)\"\(mark)>\(page.title)</a></li>"
        }
        let live: Markup = refreshes ? " data-live" : ""
        let script: Markup = refreshes ? "<script src=\"/console.js\" defer></script>" : ""
        let html: Markup = """
            <!doctype html>
            <html lang="en"><head><meta charset="utf-8"><title>\(title) · Rootgate</title>\
            <meta name="viewport" content="width=device-width, initial-scale=1">\
            <meta name="color-scheme" content="light dark">\
            <link rel="icon" href="/console.svg"><link rel="stylesheet" href="/console.css">\(script)</head>
            <body><a class="skip" href="#main">Skip to the contents</a>
            <header><p class="brand">Rootgate <small>\(Service.version)</small></p>\
            <nav aria-label="Pages"><ul>\(links)</ul></nav></header>
            <main id="main" tabindex="-1"\(live)>
            \(contents)
            </main></body></html>

            """
        return HTTPResponse(
            status, Array(html.html.utf8), contentType: "text/html; charset=utf-8", fields: ConsoleFrame.fields)
    }

    /// What every response of the console tells a browser: nothing is loaded from elsewhere, no script stands in a
    /// page, nobody frames it or reads it from another site, and nothing is kept.
    static let fields: [(name: String, value: String)] = [
        (
            "Content-Security-Policy",
            [
                "default-src 'none'", "style-src 'self'", "script-src 'self'", "img-src 'self'", "connect-src 'self'",
                "form-action 'self'", "base-uri 'none'", "frame-ancestors 'none'",
            ].joined(separator: "; ")
        ),
        ("X-Content-Type-Options", "nosniff"), ("Referrer-Policy", "no-referrer"),
        ("Cross-Origin-Resource-Policy", "same-origin"), ("Cross-Origin-Opener-Policy", "same-origin"),
        ("Cache-Control", "no-store"),
    ]

    /// The picture beside a page's title in a browser: a root above two leaves.
    static let icon = HTTPResponse(
        .ok,
        Array(
            """
            <svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16"><g fill="none" stroke="#3b7dd8" \
            stroke-width="2"><path d="M8 5 3.5 11M8 5l4.5 6"/><circle cx="8" cy="4" r="2" fill="#3b7dd8"/>\
            <circle cx="3.5" cy="12" r="2" fill="#fff"/><circle cx="12.5" cy="12" r="2" fill="#fff"/></g></svg>

            """.utf8), contentType: "image/svg+xml", fields: fields)

    /// The script that replaces the contents of a live page by those of the same page as it is now.
    static let script = HTTPResponse(
        .ok,
        Array(
            """
            "use strict";
            (() => {
              const main = document.querySelector("main[data-live]");
              if (!main) return;
              const bar = document.createElement("p");
              bar.className = "live";
              const button = document.createElement("button");
              button.type = "button";
              const note = document.createElement("span");
              note.setAttribute("role", "status");
              bar.append(button, note);
              main.before(bar);
              let paused = false;
              const show = () => {
                button.textContent = paused ? "Go on" : "Pause";
                button.setAttribute("aria-pressed", String(paused));
              };
              button.addEventListener("click", () => { paused = !paused; show(); });
              show();
              const refresh = async () => {
                const selection = document.getSelection();
                const reads = selection && !selection.isCollapsed;
                const holds = main.contains(document.activeElement) && document.activeElement !== main;
                if (!paused && !document.hidden && !reads && !holds) {
                  try {
                    const answer = await fetch(location.pathname, { cache: "no-store", credentials: "same-origin" });
                    if (!answer.ok) {
                      note.textContent = `The service answers ${answer.status}: load the page again.`;
                      setTimeout(refresh, 2000);
                      return;
                    }
                    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
                    const fresh = page.querySelector("main[data-live]");
                    if (!fresh) throw new Error("no contents");
                    main.replaceChildren(...fresh.childNodes);
                    note.textContent = "";
                  } catch {
                    note.textContent = "The service does not answer. These are its last figures.";
                  }
                }
                setTimeout(refresh, 2000);
              };
              setTimeout(refresh, 2000);
            })();

            """.utf8), contentType: "text/javascript; charset=utf-8", fields: fields)
}
