import CLMDB
import CStorageGuard
import Foundation
import TestSupport
import Testing

@Suite("Guards of LMDB's calls")
struct StorageGuardTests {
    init() {
        storage_guard_install()
    }

    private func environment(_ directory: String) throws -> OpaquePointer {
        var made: OpaquePointer?
        try #require(mdb_env_create(&made) == MDB_SUCCESS)
        let environment = try #require(made)
        storage_guard_watch(environment)
        try #require(mdb_env_set_mapsize(environment, 1 << 20) == MDB_SUCCESS)
        try #require(guarded_env_open(environment, directory, UInt32(MDB_NOTLS), 0o600) == MDB_SUCCESS)
        return environment
    }

    @Test("A failed assertion and a wild address come back as faults, with what they were, again and again")
    func faults() throws {
        let scratch = ScratchDirectory()
        let environment = try environment(scratch.path)
        defer { mdb_env_close(environment) }
        for count in 1...3 {
            let before = storage_guard_thread_faults()
            #expect(guarded_failed_assertion(environment) == STORAGE_FAULT)
            #expect(String(cString: storage_guard_reason()).contains("assertion"), "round \(count)")
            #expect(guarded_read(UnsafeRawPointer(bitPattern: 64)) == STORAGE_FAULT)
            #expect(String(cString: storage_guard_reason()).contains("SIGSEGV"), "round \(count)")
            #expect(storage_guard_thread_faults() == before + 2)
        }
    }

    @Test("A page behind the end of its file is read as zeros and counted, in a map that is covered")
    func coveredMap() throws {
        let scratch = ScratchDirectory()
        let path = scratch.path + "/file"
        let page = Int(sysconf(CInt(_SC_PAGESIZE)))
        try Data(repeating: 7, count: 4 * page).write(to: URL(fileURLWithPath: path))
        let file = open(path, O_RDWR)
        try #require(file >= 0)
        defer { close(file) }
        let start = try #require(mmap(nil, 4 * page, PROT_READ, MAP_SHARED, file, 0))
        defer { munmap(start, 4 * page) }
        let map = storage_map_add(start, 4 * page)
        try #require(map >= 0)
        defer { storage_map_remove(map) }
        try #require(ftruncate(file, off_t(page)) == 0)
        let bytes = UnsafeRawBufferPointer(start: start, count: 4 * page)
        #expect(bytes[0] == 7 && storage_map_faults(map) == 0)
        #expect(bytes[2 * page + 5] == 0 && bytes[2 * page] == 0)
        #expect(storage_map_faults(map) == 1)
        #expect(storage_map_first_fault(map) == 2 * page)
        // Inside of a guard the call comes back instead.
        #expect(guarded_read(start + 3 * page) == STORAGE_FAULT)
        #expect(storage_map_faults(map) == 2)
        #expect(String(cString: storage_guard_reason()).contains("in the map"))
    }

    @Test("A fault that is none of the storage's ends the process")
    func otherFaults() async {
        // AddressSanitizer tells of it first.
        await #expect(processExitsWith: isSanitized ? .exitCode(1) : .signal(SIGSEGV)) {
            storage_guard_install()
            UnsafeMutablePointer<UInt8>(bitPattern: 64)?.pointee = 1
        }
    }
}
