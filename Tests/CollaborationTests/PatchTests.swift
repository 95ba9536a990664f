import Collaboration
import TestSupport
import Testing

struct PatchTests {
    private struct Update: Codable, Equatable {
        var name: Patch<String> = .keep
        var permission: Patch<Permission> = .keep
        var items: Patch<[CustomItem]> = .keep
    }

    private func read(_ json: String) throws -> Update { try JSON.decode(Update.self, from: Array(json.utf8)) }

    @Test("What is absent stays, null clears, a value replaces")
    func reading() throws {
        #expect(try read("{}") == Update())
        #expect(try read(#"{"name":null}"#) == Update(name: .clear))
        #expect(try read(#"{"name":"Ana"}"#) == Update(name: .set("Ana")))
        #expect(try read(#"{"permission":"readOnly"}"#) == Update(permission: .set(.readOnly)))
        #expect(try read(#"{"permission":null,"items":[]}"#) == Update(permission: .clear, items: .set([])))
    }

    @Test("A patch is written as it is read")
    func writing() throws {
        let updates = [
            Update(), Update(name: .clear), Update(name: .set("")),
            Update(name: .set("Ana"), permission: .clear, items: .set([CustomItem(identifier: "a", title: "b")])),
        ]
        let texts = try updates.map { String(decoding: try JSON.encode($0), as: UTF8.self) }
        #expect(texts.prefix(3) == ["{}", #"{"name":null}"#, #"{"name":""}"#])
        #expect(try texts.map(read) == updates)
    }

    @Test("A value of the wrong type is neither kept nor cleared")
    func wrongTypes() {
        for json in [#"{"name":1}"#, #"{"permission":"write"}"#, #"{"items":{}}"#, #"{"items":[null]}"#] {
            #expect(thrownServiceError { _ = try read(json) }?.code == .malformedRequest, "\(json)")
        }
    }

    @Test("A patch is applied to what is stored")
    func applying() {
        for stored in [nil, "Ana"] {
            #expect(Patch<String>.keep.applied(to: stored) == stored)
            #expect(Patch<String>.clear.applied(to: stored) == nil)
            #expect(Patch.set("Bo").applied(to: stored) == "Bo")
        }
        #expect(Patch<String>(nil) == .clear)
        #expect(Patch("Bo") == .set("Bo"))
        #expect([Patch<Int>.keep, .clear, .set(1)].map(\.value) == [nil, nil, 1])
    }
}
