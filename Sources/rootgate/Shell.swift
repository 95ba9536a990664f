/// Scripts that complete the words of `rootgate` in a shell, made from the same tables as the help.
enum Shell: String, CaseIterable {
    case bash, zsh, fish

    func completions(of commands: [Command]) -> String {
        switch self {
        case .bash: bashCompletions(commands)
        case .zsh: zshCompletions(commands)
        case .fish: fishCompletions(commands)
        }
    }
}

/// What can stand behind an option.
private enum CompletedValue {
    case nothing, file, folder
    case words([String])
    /// Anything that nobody can guess.
    case anything

    init(_ option: Option) {
        switch option.value {
        case "": self = .nothing
        case "FILE": self = .file
        case "DIR", "DIRECTORY": self = .folder
        case let value where value.contains("|") && value == value.lowercased():
            self = .words(value.split(separator: "|").map(String.init))
        case let value where value.contains("FILE|") || value.contains("DIR|"): self = .file
        default: self = .anything
        }
    }
}

/// The words that come behind the command's name, and behind a verb of it.
private struct CompletedPlace {
    let command: Command
    let verb: Verb?

    static func all(_ commands: [Command]) -> [CompletedPlace] {
        commands.flatMap { command in
            command.verbs.isEmpty
                ? [CompletedPlace(command: command, verb: nil)]
                : command.verbs.map { CompletedPlace(command: command, verb: $0) }
        }
    }

    var words: String { [command.name, verb?.name].compactMap { $0 }.joined(separator: " ") }
    var options: [Option] { command.options(of: verb) }
}

/// The text between single quotes of a shell.
private func quoted(_ text: String) -> String {
    "'" + text.replacingOccurrences(of: "'", with: "'\\''") + "'"
}

// MARK: bash

private func bashCompletions(_ commands: [Command]) -> String {
    let verbs = commands.filter { !$0.verbs.isEmpty }
    var values: [String] = []
    for place in CompletedPlace.all(commands) {
        for option in place.options {
            let action: String
            switch CompletedValue(option) {
            case .nothing: continue
            case .file, .anything: action = ":"
            case .folder: action = "compgen -d -- \"$word\""
            case .words(let words): action = "compgen -W \(quoted(words.joined(separator: " "))) -- \"$word\""
            }
            values.append(
                "    \(quoted("\(place.words) --\(option.name)"))) mapfile -t COMPREPLY < <(\(action)); return ;;")
        }
    }
    let options = CompletedPlace.all(commands).map { place in
        "    \(quoted(place.words))) offered=\(quoted(place.options.map { "--\($0.name)" }.joined(separator: " "))) ;;"
    }
    return """
        # Completes the words of rootgate in bash: source this file, or put it into a folder of bash-completion.
        _rootgate() {
            local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} place=${COMP_WORDS[1]} verbs=
            local offered=
            COMPREPLY=()
            if [ "$COMP_CWORD" -eq 1 ]; then
                mapfile -t COMPREPLY < <(compgen -W \(quoted(commands.map(\.name).joined(separator: " "))) -- "$word")
                return
            fi
            case $place in
        \(verbs.map { command in
            "    \(command.name)) [ \"$COMP_CWORD\" -ne 2 ] || verbs="
                + quoted(command.verbs.map(\.name).joined(separator: " "))
                + "; place=\"$place ${COMP_WORDS[2]}\" ;;"
        }.joined(separator: "\n"))
            esac
            case "$place $before" in
        \(values.joined(separator: "\n"))
            esac
            case $place in
        \(options.joined(separator: "\n"))
            esac
            case $word in
            -*) ;;
            # Without an offer bash offers files.
            *) offered=$verbs ;;
            esac
            mapfile -t COMPREPLY < <(compgen -W "$offered" -- "$word")
        }
        complete -o default -F _rootgate rootgate

        """
}

// MARK: zsh

/// Text in a description of `_arguments` or `_describe`.
private func zshText(_ text: String) -> String {
    var escaped = ""
    for character in text {
        if "[]:\\".contains(character) { escaped.append("\\") }
        escaped.append(character)
    }
    return escaped
}

private func zshCompletions(_ commands: [Command]) -> String {
    func described(_ items: [(name: String, summary: String)]) -> String {
        items.map { quoted("\(zshText($0.name)):\(zshText($0.summary))") }.joined(separator: " ")
    }
    func arguments(_ options: [Option]) -> String {
        let specs = options.map { option -> String in
            let (star, text) = (option.isRepeatable ? "*" : "", "--\(option.name)")
            let action: String
            switch CompletedValue(option) {
            case .nothing: return quoted("\(star)\(text)[\(zshText(option.help))]")
            case .file: action = "_files"
            case .folder: action = "_files -/"
            case .words(let words): action = "(\(words.joined(separator: " ")))"
            case .anything: action = ""
            }
            return quoted("\(star)\(text)=[\(zshText(option.help))]:\(zshText(option.value)):\(action)")
        }
        return (["_arguments"] + specs + [quoted("*:operand:_files")]).joined(separator: " ")
    }
    let cases = commands.map { command -> String in
        guard !command.verbs.isEmpty else { return "    \(command.name)) \(arguments(command.options)) ;;" }
        let verbs = command.verbs.map { verb in
            "        \(verb.name)) \(arguments(command.options(of: verb))) ;;"
        }
        return """
                \(command.name))
                    if (( CURRENT == 2 )); then
                        items=(\(described(command.verbs.map { ($0.name, $0.summary) })))
                        _describe verb items
                        return
                    fi
                    shift words; (( CURRENT-- ))
                    case $words[1] in
            \(verbs.joined(separator: "\n"))
                    esac ;;
            """
    }
    return """
        #compdef rootgate
        # Completes the words of rootgate in zsh: put this into a file _rootgate in a folder of $fpath.
        _rootgate() {
            local -a items
            if (( CURRENT == 2 )); then
                items=(\(described(commands.map { ($0.name, $0.summary) })))
                _describe command items
                return
            fi
            shift words; (( CURRENT-- ))
            case $words[1] in
        \(cases.joined(separator: "\n"))
            esac
        }
        if [ "$funcstack[1]" = _rootgate ]; then _rootgate "$@"; else compdef _rootgate rootgate; fi

        """
}

// MARK: fish

private func fishCompletions(_ commands: [Command]) -> String {
    func text(_ text: String) -> String {
        "'" + text.replacingOccurrences(of: "\\", with: "\\\\").replacingOccurrences(of: "'", with: "\\'") + "'"
    }
    var lines = [
        "# Completes the words of rootgate in fish: put this into a file rootgate.fish in a folder of completions.",
        "complete -c rootgate -f -n __fish_use_subcommand",
    ]
    for command in commands {
        lines.append("complete -c rootgate -n __fish_use_subcommand -a \(command.name) -d \(text(command.summary))")
        let verbs = command.verbs.map(\.name).joined(separator: " ")
        for verb in command.verbs {
            let condition = "__fish_seen_subcommand_from \(command.name); and not __fish_seen_subcommand_from \(verbs)"
            lines.append("complete -c rootgate -f -n \(text(condition)) -a \(verb.name) -d \(text(verb.summary))")
        }
    }
    for place in CompletedPlace.all(commands) {
        let seen = place.words.split(separator: " ").map { "__fish_seen_subcommand_from \($0)" }
        for option in place.options {
            let takes: String
            switch CompletedValue(option) {
            case .nothing: takes = ""
            case .file: takes = " -r -F"
            case .folder: takes = " -x -a '(__fish_complete_directories)'"
            case .words(let words): takes = " -x -a \(text(words.joined(separator: " ")))"
            case .anything: takes = " -x"
            }
            lines.append(
                "complete -c rootgate -n \(text(seen.joined(separator: "; and "))) -l \(option.name)\(takes) "
                    + "-d \(text(option.help))")
        }
    }
    return lines.joined(separator: "\n") + "\n"
}
