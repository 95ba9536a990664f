import Foundation
import Platform
import TestSupport
import Testing

@Suite("Memory for secrets")
struct SecretMemoryTests {
    @Test("It has zeros, keeps what is written, and begins a page of its own")
    func contents() {
        let (one, two) = (SecretMemory(count: 5000), SecretMemory(count: 0))
        #expect(one.bytes.count == 5000 && one.bytes.allSatisfy { $0 == 0 })
        one.bytes[4999] = 7
        #expect(one.withBytes { $0[4999] } == 7 && one.withBytes { $0.count } == 5000)
        let page = Int(sysconf(CInt(_SC_PAGESIZE)))
        for memory in [one, two] { #expect(Int(bitPattern: memory.baseAddress) % page == 0) }
        #expect(one.baseAddress != two.baseAddress && two.bytes.isEmpty)
    }

    @Test("Cleansing overwrites every byte, and no other one")
    func cleansing() {
        var bytes = [UInt8](repeating: 9, count: 100)
        bytes.withUnsafeMutableBytes { bytes in
            guard let start = bytes.baseAddress else { return }
            System.cleanse(start + 1, bytes: 98)
        }
        #expect(bytes == [9] + [UInt8](repeating: 0, count: 98) + [9])
    }

    #if os(Linux)
    /// The flags that the kernel keeps for the mapping that an address is in.
    private func flags(at address: UnsafeMutableRawPointer) throws -> [Substring] {
        // The file tells no length, so it is read to its end.
        let file = try #require(FileHandle(forReadingAtPath: "/proc/self/smaps"))
        let text = String(decoding: try #require(try file.readToEnd()), as: UTF8.self)
        let lines = text.split(separator: "\n")
        let start = try #require(
            lines.firstIndex { line in
                let bounds = line.prefix { $0 != " " }.split(separator: "-").compactMap { UInt($0, radix: 16) }
                return bounds.count == 2 && (bounds[0]..<bounds[1]).contains(UInt(bitPattern: address))
            })
        let line = try #require(lines[start...].first { $0.hasPrefix("VmFlags:") })
        return line.split(separator: " ")
    }

    @Test(
        "The kernel leaves the pages out of core dumps, and locks them if it says so",
        .disabled(if: isSanitized, "the sanitizer lets no memory be locked"))
    func kernelFlags() throws {
        let memory = SecretMemory(count: 64)
        let flags = try flags(at: memory.baseAddress)
        #expect(memory.isExcludedFromDumps && flags.contains("dd"))
        #expect(flags.contains("lo") == memory.isLocked)
    }

    @Test("The pages are returned when the memory is released")
    func returned() throws {
        var memory: SecretMemory? = SecretMemory(count: 1 << 20)
        let address = try #require(memory?.baseAddress)
        #expect(msync(address, 1 << 20, CInt(MS_ASYNC)) == 0)
        memory = nil
        #expect(msync(address, 1 << 20, CInt(MS_ASYNC)) != 0)
    }
    #endif
}
