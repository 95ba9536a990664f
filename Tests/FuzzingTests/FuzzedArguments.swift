import Core

@testable import rootgate

/// Command lines: words that a byte 10 ends. The first word is a command.
enum FuzzedArguments {
    static let subject = FuzzSubject("arguments", bytesMax: 256, seeds: seeds) { input in
        guard let text = String(validating: input, as: UTF8.self) else { return }
        var words = text.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
        let name = words.removeFirst()
        guard let command = Rootgate.commands.first(where: { $0.name == name }) else { return }
        _ = command.help(for: words)
        let arguments: Arguments
        do {
            arguments = try command.arguments(words, environment: [:])
        } catch let error as UsageError {
            return try demand(!error.text.isEmpty, "a usage error without a text")
        } catch let error as FileFailure {
            // The file of --config, which is not there.
            return try demand(!"\(error)".isEmpty, "a failure of a file without a text")
        }
        try demand(arguments.operands.count <= command.operandsMax, "there are too many operands")
        let names = Set(command.options.map(\.name))
        try demand(names.isSuperset(of: arguments.givenNames), "an option is given that the command does not have")
        for option in command.options { try read(option, arguments, words) }
        try arguments.checkAllRead()
    }

    private static func read(_ option: Option, _ arguments: Arguments, _ words: [String]) throws {
        if option.isSwitch {
            return try demand(arguments.isOn(option.name) == arguments.isGiven(option.name), "a switch")
        }
        let texts = arguments.texts(option.name)
        if arguments.isGiven(option.name) {
            try demand(
                texts.allSatisfy { text in words.contains(text) || words.contains("--\(option.name)=\(text)") },
                "a value that nobody gave")
        }
        try demand(option.isRepeatable || texts.count <= 1, "an option has several values")
        guard arguments.text(option.name) != nil else { return }
        do {
            let number = try arguments.number(option.name, in: 1...10)
            try demand((1...10).contains(number), "a number beyond its range")
        } catch is UsageError {}
        do {
            let number = try arguments.decimal(option.name, in: 0.5...2)
            try demand((0.5...2).contains(number), "a number beyond its range")
        } catch is UsageError {}
    }

    private static func seeds() -> [[UInt8]] {
        var lines: [String] = []
        for command in Rootgate.commands {
            let options = command.options.map { $0.isSwitch ? "\n--\($0.name)" : "\n--\($0.name)\n1" }
            lines.append(command.name + options.joined())
            for verb in command.verbs {
                let options = verb.options.sorted().prefix(2).map { "\n--\($0)=0.7" }
                lines.append("\(command.name)\n\(verb.name)" + options.joined() + "\n--\n-x")
            }
        }
        return lines.map { Array($0.utf8.prefix(256)) }
    }
}
