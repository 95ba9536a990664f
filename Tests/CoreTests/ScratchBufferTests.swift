import Core
import Testing

@Suite struct ScratchBufferTests {
    @Test("A buffer holds what it was filled with and what is written to it")
    func contents() {
        let buffer = ScratchBuffer<UInt32>(repeating: 7, count: 5)
        #expect(buffer.count == 5)
        #expect(Array(buffer.elements) == [7, 7, 7, 7, 7])
        buffer[2] = 9
        buffer[3] += 1
        #expect(Array(buffer.elements) == [7, 7, 9, 8, 7])
        #expect(Array(buffer.prefix(3)) == [7, 7, 9])
        #expect(buffer.bytes.count == 20)
    }

    @Test("A buffer has the requested alignment", arguments: [1, 8, 64, 4096])
    func alignment(_ alignment: Int) {
        for count in [0, 1, 3, 1000] {
            let buffer = ScratchBuffer<UInt8>(uninitializedCount: count, alignment: alignment)
            #expect(UInt(bitPattern: buffer.baseAddress) % UInt(alignment) == 0)
            #expect(buffer.count == count)
        }
    }

    @Test("An index or a prefix beyond the end ends the process")
    func bounds() async {
        await #expect(processExitsWith: .failure) {
            let buffer = ScratchBuffer<Int>(repeating: 0, count: 4)
            buffer[4] = 1
        }
        await #expect(processExitsWith: .failure) {
            let buffer = ScratchBuffer<Int>(repeating: 0, count: 4)
            _ = buffer.prefix(5)
        }
    }
}
