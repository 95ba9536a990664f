import Foundation

let manualCommand: Command = Command(
    "manual", operands: "[COMMAND]", operandsMax: 1, "print a page of the manual for man, or write all pages",
    options: [Option("output", "DIR", "write every page into this directory, as rootgate.1 and rootgate-COMMAND.1")]
) { arguments in
    let commands = Rootgate.commands
    if let folder = arguments.text("output") {
        guard arguments.operands.isEmpty else { throw UsageError("--output writes every page, not one") }
        for page in ManualPage.all(commands) { try write(page.text, to: "\(folder)/\(page.name).1") }
        return .success
    }
    guard let name = arguments.operands.first else {
        printNow(ManualPage(of: commands).text, terminator: "")
        return .success
    }
    guard let command = commands.first(where: { $0.name == name }) else {
        throw UsageError("there is no command \(name)")
    }
    printNow(ManualPage(command).text, terminator: "")
    return .success
}
