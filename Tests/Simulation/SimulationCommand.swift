import Foundation

/// The program's arguments, and what they ask for.
struct SimulationCommand {
    private var seed = UInt64.random(in: 1...0xffff_ffff)
    private var count: UInt64?
    private var steps: UInt64 = 8000
    private var seconds: UInt64?
    private var isTwice = false
    private var fault: String?
    private static let usage = "usage: Simulation [--seed N] [--count N] [--steps N] [--seconds N] [--twice]"

    init(_ arguments: [String]) {
        var rest = arguments[...]
        var given: Set<String> = []
        while let name = rest.popFirst() {
            guard given.insert(name).inserted else {
                fault = "\(name) is given twice"
                return
            }
            if name == "--twice" {
                isTwice = true
                continue
            }
            guard let value = rest.popFirst().flatMap({ UInt64($0) }), value >= 1 || name == "--seed" else {
                fault = "\(name) needs a number\(name == "--seed" ? "" : " above 0")"
                return
            }
            switch name {
            case "--seed": seed = value
            case "--count": count = value
            case "--steps": steps = value
            case "--seconds": seconds = value
            default: fault = "there is no argument \(name)"
            }
        }
    }

    /// Returns the status of the program.
    func run() -> CInt {
        if let fault {
            FileHandle.standardError.write(Data("\(fault)\n\(SimulationCommand.usage)\n".utf8))
            return 2
        }
        let folder = FileManager.default.fileExists(atPath: "/dev/shm") ? "/dev/shm" : NSTemporaryDirectory()
        SimulationCommand.removeLeftovers(in: folder)
        let directory = "\(folder)/rootgate-simulation-\(getpid())"
        defer { try? FileManager.default.removeItem(atPath: directory) }
        let began = ContinuousClock.now
        var total: UInt64 = 0
        var done: UInt64 = 0
        CrashNote.install()
        print("SEED=\(seed)")
        do {
            let population = try SimulatedPeople()
            while done < count ?? (seconds == nil ? 1 : .max) {
                if let seconds, ContinuousClock.now - began >= .seconds(Int(clamping: seconds)) { break }
                guard let outcome = simulate(seed &+ done, population, directory) else { return 1 }
                total += outcome.steps
                done += 1
                if isTwice {
                    guard let again = simulate(seed &+ done - 1, population, directory) else { return 1 }
                    guard again.trace == outcome.trace, again.steps == outcome.steps else {
                        print("FAILED: seed \(seed &+ done - 1) ran differently the second time")
                        return 1
                    }
                    total += again.steps
                }
                if count == 1 { print("trace \(String(outcome.trace, radix: 16)), \(outcome.steps) steps") }
            }
        } catch {
            print("FAILED: \(error)")
            return 1
        }
        let time = (ContinuousClock.now - began) / .seconds(1)
        print("\(done) seeds, \(total) steps in \(Int(time * 1000)) ms: \(Int(Double(total) / time * 60)) a minute")
        return 0
    }

    /// Removes the data of runs that have ended with their process.
    private static func removeLeftovers(in folder: String) {
        let start = "rootgate-simulation-"
        for name in (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? [] where name.hasPrefix(start) {
            guard let process = pid_t(name.dropFirst(start.count)), kill(process, 0) != 0 else { continue }
            try? FileManager.default.removeItem(atPath: folder + "/" + name)
        }
    }

    private func simulate(_ seed: UInt64, _ population: SimulatedPeople, _ directory: String) -> (
        trace: UInt64, steps: UInt64
    )? {
        try? FileManager.default.removeItem(atPath: directory)
        CrashNote.begin(seed: seed, steps: steps)
        var world: SimulatedWorld?
        do {
            let made = try SimulatedWorld(seed: seed, population: population, directory: directory)
            world = made
            try made.run(steps: steps)
            return (made.trace, made.step)
        } catch {
            let text = (error as? Violation)?.text ?? "\(error)"
            print("FAILED: seed \(seed), step \(world?.step ?? 0): \(text)")
            print("replay: \(CrashNote.replay(seed: seed, steps: steps))")
            return nil
        }
    }
}
