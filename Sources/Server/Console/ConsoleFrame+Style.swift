extension ConsoleFrame {
    /// The style of all pages, in light and dark, for wide and narrow screens.
    static let style = HTTPResponse(
        .ok,
        Array(
            """
            :root {
              color-scheme: light dark;
              --paper: #fbfbf9; --card: #ffffff; --ink: #1c2024; --soft: #5a6370; --line: #dcdfe3;
              --accent: #1f5fbf; --second: #b0541f; --good: #1d6b3a; --bad: #a81f2c; --wash: #eef1f5;
            }
            @media (prefers-color-scheme: dark) {
              :root {
                --paper: #14171b; --card: #1b1f24; --ink: #e7eaee; --soft: #a0a9b4; --line: #343a42;
                --accent: #7db0ff; --second: #f0a36b; --good: #72cf95; --bad: #ff8d93; --wash: #23282f;
              }
            }
            * { box-sizing: border-box; }
            body {
              margin: 0 auto; max-width: 76rem; padding: 0 1.25rem 3rem; background: var(--paper);
              color: var(--ink); font: 1rem/1.5 system-ui, sans-serif; overflow-wrap: anywhere;
            }
            header {
              display: flex; flex-wrap: wrap; gap: 0 2rem; align-items: baseline;
              border-bottom: 1px solid var(--line);
            }
            .brand { font-weight: 650; margin: .8rem 0; }
            .brand small { color: var(--soft); font-weight: 400; }
            nav ul { display: flex; flex-wrap: wrap; gap: 0 1.25rem; list-style: none; margin: 0; padding: 0; }
            nav a {
              display: inline-block; padding: .5rem 0; text-decoration: none;
              border-bottom: 2px solid transparent;
            }
            nav a[aria-current] { color: var(--ink); border-color: var(--accent); }
            a { color: var(--accent); }
            a:focus-visible, button:focus-visible, input:focus-visible, textarea:focus-visible,
            .scroll:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; }
            main:focus { outline: none; }
            .skip { position: absolute; left: -99rem; }
            .skip:focus { left: 1rem; top: 1rem; background: var(--card); padding: .5rem; }
            h1 { font-size: 1.6rem; line-height: 1.25; margin: 1.4rem 0 .6rem; font-weight: 650; }
            h2 { font-size: 1.1rem; margin: 1.8rem 0 .6rem; font-weight: 650; }
            h3 { font-size: 1rem; margin: 0 0 .2rem; }
            code, .hash { font-family: ui-monospace, monospace; font-size: .85em; }
            small, .note, .empty { color: var(--soft); }
            time { white-space: nowrap; }
            .note { font-size: .9rem; max-width: 46rem; }
            .good { color: var(--good); }
            .bad { color: var(--bad); }
            .state { display: flex; flex-wrap: wrap; gap: .2rem 1.5rem; margin: 0; }
            .alarms {
              border-left: 4px solid var(--bad); padding: .5rem 1.5rem; margin: 1rem 0; color: var(--bad);
            }
            .live {
              float: right; margin: 1.2rem 0 0 1rem; display: flex; flex-direction: row-reverse; gap: .8rem;
              align-items: center; color: var(--bad);
            }
            .live button { color: var(--ink); }
            .plots {
              display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 19rem), 1fr));
              gap: 1rem;
            }
            figure {
              display: flex; flex-direction: column;
              margin: 0; padding: .8rem 1rem; background: var(--card); border: 1px solid var(--line);
              border-radius: 8px;
            }
            figcaption { font-weight: 600; font-size: .95rem; }
            .legend {
              display: flex; flex-wrap: wrap; gap: 0 1rem; list-style: none; margin: 0 0 .3rem; padding: 0;
              font-size: .85rem;
            }
            .legend b { font-variant-numeric: tabular-nums; }
            .plot { display: block; margin-top: auto; width: 100%; height: auto; }
            .plot path, .key path {
              fill: none; stroke-width: 1.6; stroke-linejoin: round; stroke-linecap: round;
            }
            .plot .grid { stroke: var(--line); stroke-width: 1; }
            .key { margin-right: .35rem; vertical-align: middle; }
            .plot .l0, .l0 .key path { stroke: var(--accent); }
            .plot .l1, .l1 .key path { stroke: var(--second); stroke-dasharray: 5 3; }
            .axis { fill: var(--soft); font-size: 10px; }
            .end { text-anchor: end; }
            .columns {
              display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 30rem), 1fr));
              gap: 0 2.5rem;
            }
            .columns.wide { grid-template-columns: repeat(auto-fit, minmax(min(100%, 22rem), 1fr)); }
            .columns > section, .explained > section { min-width: 0; }
            .scroll { overflow-x: auto; }
            table {
              border-collapse: collapse; width: 100%; font-size: .9rem; font-variant-numeric: tabular-nums;
            }
            caption { text-align: left; color: var(--soft); padding-bottom: .3rem; }
            th, td {
              text-align: left; vertical-align: baseline; padding: .3rem .8rem .3rem 0;
              border-bottom: 1px solid var(--line); overflow-wrap: break-word;
            }
            th { font-weight: 500; }
            thead th { color: var(--soft); font-size: .85rem; white-space: nowrap; }
            dl { margin: 0; font-size: .9rem; }
            dl div { display: flex; gap: 1rem; border-bottom: 1px solid var(--line); padding: .3rem 0; }
            dt { flex: 0 0 11rem; color: var(--soft); }
            dd { margin: 0; min-width: 0; font-variant-numeric: tabular-nums; }
            form { display: grid; gap: .4rem; max-width: 46rem; margin: 1rem 0; }
            form.row { display: flex; flex-wrap: wrap; align-items: center; gap: .6rem; max-width: none; }
            label { font-weight: 500; }
            input, textarea, button {
              font: inherit; color: inherit; background: var(--card); border: 1px solid var(--soft);
              border-radius: 6px; padding: .4rem .6rem; min-width: 0; max-width: 100%;
            }
            textarea {
              font-family: ui-monospace, monospace; font-size: .85rem; resize: vertical;
              overflow-wrap: anywhere;
            }
            button { justify-self: start; cursor: pointer; background: var(--wash); }
            form > button { margin-top: .4rem; }
            form.row > button { margin: 0; }
            .answer {
              font-size: 1.05rem; padding: .7rem 1rem; border-left: 4px solid var(--accent);
              background: var(--wash); color: var(--ink);
            }
            .answer.bad { border-color: var(--bad); }
            .explained {
              display: grid; grid-template-columns: minmax(0, 26rem) minmax(0, 1fr); gap: 0 2.5rem;
            }
            .tree { display: block; margin-bottom: .6rem; width: 100%; max-width: 26rem; height: auto; }
            .tree rect { fill: var(--card); stroke: var(--soft); }
            .tree text { fill: var(--ink); font-size: 13px; }
            .tree .label, .tree .level { fill: var(--soft); font-size: 11px; }
            .tree .way rect, .tree .root rect { stroke: var(--accent); stroke-width: 2; }
            .tree .leaf rect { fill: var(--wash); }
            .tree .sibling rect { stroke-dasharray: 4 3; }
            .tree .member rect { stroke: var(--good); stroke-width: 3; }
            .tree .stranger rect { stroke: var(--bad); stroke-width: 3; }
            .tree .edge { fill: none; stroke: var(--soft); stroke-dasharray: 4 3; }
            .tree .edge.way { stroke: var(--accent); stroke-width: 2; stroke-dasharray: none; }
            .k0::before, .k1::before {
              content: ""; display: inline-block; width: 1.4rem; margin-right: .4rem; vertical-align: middle;
              border-top: 2px solid var(--accent);
            }
            .k1::before { border-top: 2px dashed var(--soft); }
            .checks { margin: 0; padding: 0 0 0 1.5rem; }
            .checks li { padding: .35rem 0; color: var(--ink); border-bottom: 1px solid var(--line); }
            .checks p { margin: 0; color: var(--soft); font-size: .9rem; }
            .outcome { font-weight: 600; margin-left: .5rem; }
            .checks .good .outcome { color: var(--good); }
            .checks .bad .outcome { color: var(--bad); }
            .checks .open .outcome { color: var(--soft); font-weight: 400; }
            .popover, .card, .group {
              background: var(--card); border: 1px solid var(--line); border-radius: 12px;
              padding: .9rem 1.1rem; margin: 0 0 1rem;
            }
            .popover { max-width: 24rem; padding: 0; }
            .popover section { padding: .9rem 1.1rem; }
            .popover section + section { border-top: 1px solid var(--line); }
            .popover p { margin: 0 0 .3rem; }
            .popover ul { list-style: none; margin: 0; padding: 0; }
            .popover button { cursor: default; color: var(--soft); }
            th[scope="row"] { overflow-wrap: anywhere; min-width: 9rem; }
            .face {
              display: inline-flex; align-items: center; justify-content: center; width: 1.9rem;
              height: 1.9rem; margin-right: .4rem; border-radius: 50%; background: var(--wash);
              border: 1px solid var(--line); font-size: .75rem; font-weight: 600;
            }
            .group .note { margin: .5rem 0 0; }
            .group ul, .attributions { margin: 0; padding: 0 0 0 1.2rem; }
            .shelf, .conversations { list-style: none; margin: 0; padding: 0; }
            .shelf {
              display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 26rem), 1fr));
              gap: 1rem;
            }
            .card { display: flex; gap: 1rem; margin: 0; }
            .card .text { min-width: 0; flex: 1; }
            .card p, .attribution p { margin: 0 0 .3rem; }
            .thumbnail {
              flex: none; width: 6rem; height: 6rem; border-radius: 8px; object-fit: cover;
              background: var(--wash);
            }
            .thumbnail.none {
              display: flex; align-items: center; justify-content: center; text-align: center;
              padding: .4rem; color: var(--soft); font-size: .75rem; border: 1px dashed var(--line);
            }
            .conversations { padding: 0 0 .3rem .5rem; font-size: .9rem; }
            .menu { color: var(--soft); font-size: .9rem; }
            .menu span + span::before { content: " · "; white-space: pre; }
            .pill {
              display: inline-flex; align-items: center; gap: .4rem; max-width: 100%; border-radius: 1.2rem;
              padding: .15rem .8rem .15rem .2rem; background: var(--wash); font-size: .9rem;
            }
            .pill .face { flex: none; }
            .pill .face { margin: 0; background: var(--card); }
            .badge {
              white-space: nowrap; padding: 0 .5rem; border: 1px solid var(--soft);
              border-radius: 1rem; font-size: .75rem;
              color: var(--soft);
            }
            @media (max-width: 52rem) { .explained { grid-template-columns: minmax(0, 1fr); } }
            @media (max-width: 30rem) {
              body { padding: 0 1rem 2rem; }
              dt { flex-basis: 8.5rem; }
              .card { flex-direction: column; }
            }

            """.utf8), contentType: "text/css; charset=utf-8", fields: fields)
}
