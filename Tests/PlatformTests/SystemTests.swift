import Foundation
import Platform
import TestSupport
import Testing

@Suite("System calls")
struct SystemTests {
    @Test(
        "A path has a folder and a last part, however short it is",
        arguments: [
            ("a", ".", "a"), ("é", ".", "é"), ("ab", ".", "ab"), ("a/", ".", "a"), ("a/b", "a", "b"),
            ("./b", ".", "b"), ("a/b//", "a", "b"), ("a//b", "a", "b"), ("/a", "/", "a"), ("/", "/", ""),
            ("//", "/", ""), ("/a/b", "/a", "b"), ("", ".", ""), ("../x", "..", "x"),
        ])
    func folders(path: String, folder: String, name: String) {
        #expect(System.folder(of: path) == folder)
        #expect(System.name(of: path) == name)
    }

    @Test("Resident bytes count memory that was touched")
    func residentBytes() {
        let count = 32 << 20
        let memory = [UInt8](repeating: 7, count: count)
        let resident = System.residentBytes
        #expect(memory[count - 1] == 7)
        #expect(resident > count)
    }

    @Test("A thread lets others run when its turn is over, and not before")
    func processorTurn() {
        let calls = Shared(0)
        var short = ProcessorTurn(microseconds: 0) { calls.increment() }
        for _ in 0..<3 { short.endIfOver() }
        #expect(calls.value == 3)
        var long = ProcessorTurn(microseconds: 60_000_000) { calls.increment() }
        for _ in 0..<3 { long.endIfOver() }
        #expect(calls.value == 3)
        // A turn that begins later ends later.
        var waiting = ProcessorTurn(microseconds: 200_000) { calls.increment() }
        usleep(210_000)
        waiting.begin()
        waiting.endIfOver()
        #expect(calls.value == 3)
        usleep(210_000)
        waiting.endIfOver()
        #expect(calls.value == 4)
    }

    #if os(Linux)
    @Test("A thread with short time slices keeps its niceness")
    func timeSlice() {
        let process = CInt(PRIO_PROCESS.rawValue)
        let levels = Shared<[CInt]>([])
        onThreads(1) { _ in
            // On Linux each thread has its own.
            setpriority(process, 0, 7)
            System.shortenTimeSlice(microseconds: 100)
            levels.with { $0.append(getpriority(process, 0)) }
            setpriority(process, 0, 0)
        }
        #expect(levels.value == [7])
    }

    @Test("A thread that is confined to a processor runs there, and so do the threads that it starts")
    func confinement() {
        let processors = ProcessInfo.processInfo.activeProcessorCount
        let found = Shared<[Int]>([])
        onThreads(1) { _ in
            for number in 0..<processors {
                #expect(System.confineThread(toProcessor: number))
                onThreads(1) { _ in found.with { $0.append(System.processorsOfThread) } }
            }
            #expect(!System.confineThread(toProcessor: processors))
            #expect(System.confineThread(toProcessor: nil))
            found.with { $0.append(System.processorsOfThread) }
        }
        #expect(found.value == [Int](repeating: 1, count: processors) + [processors])
    }
    #endif

    /// The descriptor of a new file, which the caller closes. The file has no name any more.
    private func scratchFile() throws -> CInt {
        let scratch = ScratchDirectory()
        let descriptor = withExtendedLifetime(scratch) { open($0.path + "/file", O_RDWR | O_CREAT, 0o600) }
        try #require(descriptor >= 0)
        return descriptor
    }

    @Test("Reserving space grows a file and keeps what is in it")
    func reserveSpace() throws {
        let descriptor = try scratchFile()
        defer { close(descriptor) }
        #expect(write(descriptor, [1, 2, 3] as [UInt8], 3) == 3)
        #expect(System.reserveSpace(descriptor, bytes: 1 << 20) == 0)
        var status = stat()
        #expect(fstat(descriptor, &status) == 0)
        #expect(Int(status.st_blocks) * 512 >= 1 << 20)
        var bytes = [UInt8](repeating: 0, count: 3)
        #expect(pread(descriptor, &bytes, 3, 0) == 3)
        #expect(bytes == [1, 2, 3])
    }

    @Test("Reserving less space than a file has changes nothing")
    func reserveLess() throws {
        let descriptor = try scratchFile()
        defer { close(descriptor) }
        let count = 100_000
        #expect(write(descriptor, [UInt8](repeating: 5, count: count), count) == count)
        #expect(System.reserveSpace(descriptor, bytes: 4096) == 0)
        var status = stat()
        #expect(fstat(descriptor, &status) == 0)
        #expect(Int(status.st_size) == count)
    }

    @Test("Reserving space for no file is refused with an errno")
    func reserveNothing() {
        #expect(System.reserveSpace(-1, bytes: 4096) == EBADF)
    }

    @Test("A failure names its call and the system's reason")
    func failureText() {
        let failure = SystemFailure("open", number: ENOENT)
        #expect(failure.description == "open: \(String(cString: strerror(ENOENT)))")
        #expect(failure.number == ENOENT)
    }

    @Test("The descriptor limit is raised to what the system allows, and stays there")
    func descriptorLimit() {
        let limit = System.raiseDescriptorLimit()
        #expect(limit >= 256)
        #expect(System.raiseDescriptorLimit() == limit)
    }

    @Test(
        "A table of descriptors that has grown has room for as many, and none of them is open",
        .enabled(if: FileManager.default.fileExists(atPath: "/proc/self/status"), "needs /proc"))
    func descriptorTable() throws {
        func size() throws -> Int {
            let status = try String(contentsOfFile: "/proc/self/status", encoding: .utf8)
            let line = try #require(status.split(separator: "\n").first { $0.hasPrefix("FDSize:") })
            return try #require(Int(line.split(separator: "\t").last ?? ""))
        }
        // More than other tests open meanwhile.
        let count = min(System.raiseDescriptorLimit(), max(1 << 16, 2 * (try size()) + 1))
        System.growDescriptorTable(to: count)
        #expect(try size() >= count)
        #expect(fcntl(CInt(count - 1), F_GETFD) == -1)
        System.growDescriptorTable(to: .max)
        System.growDescriptorTable(to: 0)
    }

    @Test("The processor's time of a thread passes while it computes, and not while it sleeps")
    func processorTime() {
        let begin = System.processorTimeOfThread
        usleep(50_000)
        let afterSleep = System.processorTimeOfThread
        #expect(afterSleep - begin < .milliseconds(40))
        let deadline = ContinuousClock.now + .seconds(10)
        while System.processorTimeOfThread - afterSleep < .milliseconds(5), ContinuousClock.now < deadline {}
        #expect(System.processorTimeOfThread - afterSleep >= .milliseconds(5))
    }
}
