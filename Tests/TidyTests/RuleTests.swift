import Testing

/// Each rule is seen to find what breaks it, and to leave alone what doesn't.
struct RuleTests {
    private func lines(_ violations: [Violation]) -> [Int] { violations.map(\.line) }

    @Test("A line of 121 columns is found, one of 120 is not, and letters count as one column each")
    func longLine() {
        let text = """
            \(String(repeating: "a", count: 120))
            \(String(repeating: "a", count: 121))
            \(String(repeating: "ä", count: 120))
            """
        #expect(lines(longLines(TrackedFile("Sources/A.swift", text))) == [2])
        #expect(lines(longLines(TrackedFile("deploy/run", "#!/bin/sh\n" + text))) == [3])
        #expect(longLines(TrackedFile("README.md", text)).isEmpty)
    }

    @Test("Tabs, white space at the end and a wrong end of a file are found")
    func space() {
        #expect(lines(untidySpace(TrackedFile("a.md", "good\nbad \n\tbad\nbad\r\n"))) == [2, 3, 4])
        #expect(lines(untidySpace(TrackedFile("a.md", "one\ntwo"))) == [2])
        #expect(lines(untidySpace(TrackedFile("a.md", "one\n\n"))) == [2])
        #expect(untidySpace(TrackedFile("a.md", "one\n\ntwo\n")).isEmpty)
        #expect(untidySpace(TrackedFile("a.md", "")).isEmpty)
    }

    @Test("Notes of work to be done are found, words that contain them are not")
    func note() {
        let note = "TO" + "DO"
        #expect(lines(leftNotes(TrackedFile("a.c", "int a;\n// \(note): more\n// the \(note)S\n"))) == [2])
    }

    private func longFunctionLines(_ name: String, _ text: String) -> [Int] {
        lines(longFunctions(TrackedFile(name, text)))
    }

    @Test("Functions, closures and accessors of 71 lines are found, with their signatures")
    func longFunction() {
        func body(_ count: Int) -> String { String(repeating: "        work()\n", count: count) }
        let good = "struct A {\n    let a = 1\n    func good() {\n\(body(68))    }\n"
        #expect(longFunctionLines("a.swift", good + "}\n") == [])
        let bad = "    func bad(\n        a: Int\n    ) -> [UInt8]\n    {\n\(body(66))    }\n}\n"
        #expect(longFunctionLines("a.swift", good + bad) == [73])
        let closure = "let run = Command(\n    \"a\"\n) { arguments in\n\(body(68))}\n"
        #expect(longFunctionLines("a.swift", closure) == [1])
        let accessor = "extension A {\n    var a: Int {\n\(body(69))    }\n}\n"
        #expect(longFunctionLines("a.swift", accessor) == [2])
    }

    @Test("Braces in comments, literals and interpolations are no braces")
    func braces() {
        let text = ##"""
            func good() {
                /* { /* { */ */ a("{ \(b.map { "{\($0)" })", #"{\("#)  // {
                c = "\"{"
            }

            """##
        let file = TrackedFile("a.swift", text + String(repeating: "\n", count: 80) + "let b = 1\n")
        #expect(longFunctions(file).isEmpty)
        #expect(String(decoding: file.comments, as: UTF8.self).contains("/* { /* { */ */  "))
    }

    @Test("Functions of Python of 71 lines are found, with their signatures and without what follows them")
    func longFunctionOfPython() {
        func body(_ count: Int) -> String { String(repeating: "        work()\n", count: count) }
        let good = "class A:\n    def good(self) -> None:\n\(body(35))\n\(body(33))\n\n"
        #expect(longFunctionLines("a.py", good + "    limit = 1\n") == [])
        let bad = "    async def bad(\n        self,\n    ) -> None:\n\(body(68))\n"
        #expect(longFunctionLines("a.py", good + bad + "def last() -> None:\n    work()\n") == [74])
        #expect(longFunctionLines("a.py", good + bad.replacing("        self,\n", with: "")) == [])
    }

    @Test("Functions of C of 71 lines are found, tables and types are not")
    func longFunctionOfC() {
        let work = String(repeating: "    work('{', \"{\");\n", count: 68)
        let types = "struct a { int b; };\n"
        #expect(longFunctionLines("a.c", types + "static int f(int a,\n    int b) {\n\(work)}\n") == [2])
        #expect(longFunctionLines("a.c", types + "static int f(int a) {\n\(work)}\n") == [])
        let rows = String(repeating: "    {1, 2},\n", count: 80)
        #expect(longFunctionLines("a.h", "static const int a[80][2] = {\n\(rows)};\n") == [])
    }

    @Test("A file that is not named after its type is found, one named after an extended type is not")
    func misnamedFile() {
        let folder = "Sources/Collaboration/Model/"
        func count(_ path: String, _ text: String) -> Int { misnamedFiles(TrackedFile(path, text)).count }
        #expect(count(folder + "Account.swift", "public struct Account: Hashable {}\n") == 0)
        #expect(count(folder + "Account+Codable.swift", "extension Account: Codable {}\n") == 0)
        #expect(count(folder + "Accounts.swift", "public struct Account: Hashable {}\n") == 1)
        #expect(count(folder + "Account+Codable.swift", "// extension Account\nstruct Name {}\n") == 1)
        #expect(count("Sources/Core/Accounts.swift", "struct Account {}\n") == 1)
        #expect(count("Tests/CoreTests/Accounts.swift", "struct Account {}\n") == 0)
        #expect(count("Sources/rootgate/LoadCommand.swift", "let loadCommand = 1\n") == 0)
        #expect(count("Sources/Core/LoadCommand.swift", "let loadCommand = 1\n") == 1)
        #expect(count("Sources/Collaboration/Rules/Checks.swift", "func check() {}\n") == 0)
    }

    @Test("An import of a C module is found where it is not allowed, and an allowance that nobody uses is, too")
    func imports() {
        let files = [
            TrackedFile("Sources/A.swift", "import Core\ninternal import CLMDB\n// import COpenSSL\n"),
            TrackedFile("Sources/B.swift", "import CKernels\n"),
        ]
        let found = misplacedImports(files, allowed: ["Sources/B.swift", "Sources/C.swift"])
        #expect(found.map(\.path) == ["Sources/A.swift", "Sources/C.swift"])
        #expect(found.first?.line == 2)
    }

    @Test("Memory that is freed by others than its owners is found, and too many calls")
    func deallocations() {
        let files = [
            TrackedFile("Sources/A.swift", "a.deallocate()\n// b.deallocate()\nlet c = \"c.deallocate()\"\n"),
            TrackedFile("Sources/Owner.swift", "a.deallocate()\nb.deallocate()\n"),
        ]
        let owners: Set = ["Sources/Owner.swift"]
        #expect(misplacedDeallocations(files, owners: owners, max: 3).map(\.path) == ["Sources/A.swift"])
        #expect(misplacedDeallocations(files, owners: owners, max: 2).map(\.path) == ["Sources/A.swift", "Sources"])
        #expect(misplacedDeallocations([], owners: owners, max: 2).map(\.path) == ["Sources/Owner.swift"])
    }

    @Test("Banned calls are found in code, not in comments and strings")
    func banned() {
        let text = """
            let a = try! b()
            let c = try d() as! E  // try! as!
            print("try!")
            stream.print(a)
            fatalError()
            preconditionFailure("a reason")
            let f = "\\(g as? H)"
            """
        #expect(lines(bannedCalls(TrackedFile("Sources/Core/A.swift", text))) == [1, 2, 3, 5])
        #expect(lines(bannedCalls(TrackedFile("Sources/rootgate/A.swift", text))) == [1, 2, 5])
    }

    @Test("A call of LMDB that has no guard is found")
    func unguarded() {
        let files = [
            TrackedFile("Sources/RootSets/StorageGuard.swift", "func mdb_get() -> CInt { guarded_get() }\n"),
            TrackedFile("Sources/RootSets/A.swift", "mdb_get()\nmdb_drop() // mdb_put()\nmdb_strerror(0)\n"),
        ]
        #expect(lines(unguardedCalls(files)) == [2])
    }

    @Test("A Mutex is found outside of the file that has Lock")
    func hiddenLock() {
        let text = "// Mutex\nlet a = Lock(1)\nlet b = Mutex(1)\n"
        #expect(lines(hiddenLocks(TrackedFile("Sources/Server/A.swift", text))) == [3])
        #expect(hiddenLocks(TrackedFile("Sources/Core/Lock.swift", text)).isEmpty)
    }

    @Test("A lock of a function, of an optional and of a tuple with one are found, and no lock of a container")
    func lockedFunction() {
        let text = """
            typealias Body = @Sendable () -> Void
            let a = Lock<Body?>(nil)
            let b = Lock<(@Sendable (Int) -> Void)?>(nil)
            let c = Lock<(count: Int, body: @Sendable ([Int]) -> Void)>((0, { _ in }))
            let d = Lock<[Int: Body]>([:])
            let e = Lock<[@Sendable () -> Void]>([])
            let f = Lock<Set<Int>>([])
            let g = Lock<Int>(0), h: Body = {}

            """
        #expect(lines(lockedFunctions([TrackedFile("Sources/Server/A.swift", text)])) == [2, 3, 4])
    }

    @Test("Drawers for odds and ends are found by their names")
    func drawer() {
        #expect(drawerNames(TrackedFile("Sources/Core/Helpers.swift", "let a = 1\n")).count == 1)
        #expect(drawerNames(TrackedFile("Tests/Python/utils.py", "")).count == 1)
        #expect(lines(drawerNames(TrackedFile("A.swift", "let a = FileManager.default\nenum KeyUtils {}\n"))) == [2])
        #expect(drawerNames(TrackedFile("A.swift", "// a helper\nstruct Management {}\n")).isEmpty)
    }

    @Test("A public declaration of the client without documentation is found")
    func undocumented() {
        let text = """
            public import Core
            /// Documented.
            public struct A {
                public let b: Int
                /// Documented.
                @discardableResult
                public func c() {}
                @discardableResult
                public func d() {}
                let e = 1
            }
            """
        #expect(lines(undocumentedDeclarations(TrackedFile("Sources/RootgateClient/A.swift", text))) == [4, 9])
        #expect(undocumentedDeclarations(TrackedFile("Sources/Core/A.swift", text)).isEmpty)
    }

    @Test("Tests whose names are no sentences are found")
    func names() {
        let text = """
            @Test func nameless() {}
            @Test("Who reads gets an answer") func good() {}
            @Test("32 bytes are enough") func number() {}
            @Test(
                "It works as well on a line of its own", arguments: [1])
            @Test("no capital letter") func a() {}
            @Test("Word") func b() {}
            @Test("A full stop at the end.") func c() {}
            @Test(arguments: [1]) func d() {}
            // @Test func comment() {}
            """
        #expect(lines(testNames(TrackedFile("Tests/CoreTests/A.swift", text))) == [1, 6, 7, 8, 9])
    }

    @Test("Rows of the ledger are found that are no rows, that repeat an item, or whose test there is not once")
    func ledger() {
        let tests = TrackedFile(
            "Tests/ATests/A.swift",
            """
            @Test("One") func one() {}
            @Test(
                "Says \\"two\\"", arguments: [1])
            func two() {}
            @Test("Twice") func twice() {}
            @Test("Twice") func again() {}
            """)
        let rows = [
            "seed\titem\ttest", "1\ta\tOne", "1\tb\tSays \"two\"", "1\ta\tOne", "1\tc", "2\td\tTwice", "2\te\tNone",
        ]
        let ledger = TrackedFile(ledgerPath, rows.joined(separator: "\n") + "\n")
        #expect(lines(brokenLedger([tests, ledger])) == [4, 5, 6, 7])
        #expect(brokenLedger([tests]).count == 1)
        #expect(lines(brokenLedger([tests, TrackedFile(ledgerPath, "item\n")])) == [1, 0])
    }

    @Test("Files of one name are found, whatever their folders and the case of their letters")
    func equal() {
        let paths = [
            "Sources/A/Load.swift", "Tests/B/load.swift", "Sources/A/shim.h", "Sources/B/shim.h",
            "Sources/C/Other.swift", "deploy/Load.swift", "Benchmarks/results/a/RESULTS.md",
            "Benchmarks/results/b/RESULTS.md",
        ]
        #expect(equalNames(paths.map { TrackedFile($0, "") }).map(\.path) == Array(paths.prefix(2)))
    }

    @Test("What does not belong into the root is found")
    func root() {
        let paths = ["README.md", ".github/SECURITY.md", "Sources/A.swift", "NOTES.md", "scripts/run"]
        #expect(paths.flatMap { strayRootEntries(TrackedFile($0, "")) }.map(\.path) == Array(paths.suffix(2)))
    }

    private static let manifest = TrackedFile(
        "Package.swift",
        """
        func layer(_ name: String) -> Target { .target(name: name) }
            products: [.library(name: "Product", targets: ["Core"])],
            targets: [
                .systemLibrary(
                    name: "CLMDB", pkgConfig: "lmdb", providers: [.apt(["liblmdb-dev"])]),
                layer("Core"),
                // layer("Gone"),
                program(
                    "rootgate", ["Core"]),
                .target(name: "TestSupport", dependencies: ["Core"]),
                tests(of: "Core"),
                tests(
                    of: "Other", ["Core"]),
                .testTarget(name: "TidyTests"),
        """)

    @Test("The targets of a manifest are read from it")
    func targets() {
        let targets = ManifestTargets(Self.manifest)
        #expect(targets.sources == ["CLMDB", "Core", "rootgate", "TestSupport"])
        #expect(targets.tested == ["Core", "Other"])
    }

    @Test("Targets that the table lacks are found, and rows that are no targets")
    func undocumentedTarget() {
        let table = """
            ## Targets

            | target | what |
            |---|---|
            | `CLMDB` | a |
            | `Core` | b |
            | `TestSupport` | c |
            | `Gone` | d |
            """
        let found = undocumentedTargets([Self.manifest, TrackedFile("ARCHITECTURE.md", table)])
        #expect(found.map { $0.reason.contains("rootgate") } == [true, false])
        #expect(found.count == 2)
        #expect(undocumentedTargets([Self.manifest, TrackedFile("ARCHITECTURE.md", "# Nothing\n")]).count == 1)
    }

    @Test("A layer without tests is found, and tests without a layer")
    func unmirrored() {
        let reasons = unmirroredTests([Self.manifest]).map(\.reason)
        #expect(reasons == ["OtherTests mirrors no target", "rootgate has no test target"])
    }

    @Test("Options that the handbook lacks are found, and those that nobody has")
    func options() {
        let command = """
                    Option("data", "DIR", "where"),
                    Option(switch: "loud", "said"),
                    Option(
                        "size", "N", standard: "1", "how much"),
            """
        let page = """
            ## Options of serve

            | option | default | what |
            |---|---|---|
            | `--data` `DIR` | | where |
            | `--size` `N` | 1 | how much |
            | `--gone` | | what |
            """
        let found = undocumentedOptions([
            TrackedFile("Sources/rootgate/Configuration+Arguments.swift", command),
            TrackedFile("deploy/handbook/options.md", page),
        ])
        #expect(found.map(\.reason) == ["the option --loud is not listed", "--gone is no option of serve"])
    }

    @Test("Paths in comments and documents that don't exist are found, and links that lead nowhere")
    func paths() {
        let files = [
            TrackedFile(
                "Sources/Core/A.swift",
                "// Sources/Core/A.swift, Sources/Core/B.swift\nlet a = \"Sources/C.swift\"\n/// See Tests/*/A.h.\n"),
            TrackedFile("README.md", "`deploy/run` [a](Sources/Core) [b](NO.md#c) [d](#e) [f](https://a.b/c)\n"),
            TrackedFile("ARCHITECTURE.md", "`Core/A.swift`, `A.swift` and `B.swift`\n"),
            TrackedFile("deploy/handbook/a.md", "[a](../../README.md) [b](../README.md)\n"),
        ]
        #expect(
            danglingPaths(files).map { "\($0)" } == [
                "Sources/Core/A.swift:1: Sources/Core/B.swift does not exist",
                "Sources/Core/A.swift:3: Tests/*/A.h does not exist",
                "README.md:1: deploy/run does not exist",
                "README.md:1: a link leads to NO.md, which does not exist",
                "ARCHITECTURE.md:1: no file is named B.swift",
                "deploy/handbook/a.md:1: a link leads to deploy/README.md, which does not exist",
            ])
    }

    @Test("Walls of text are found, and a README that is too long")
    func walls() {
        let wall = String(repeating: "word ", count: 101)
        #expect(lines(wallsOfText(TrackedFile("PROTOCOL.md", "short\n\(wall)\n| \(wall) |\n"))) == [2])
        let many = String(repeating: "a\n", count: 91)
        #expect(wallsOfText(TrackedFile("README.md", many)).count == 1)
        #expect(wallsOfText(TrackedFile("README.md", String(many.dropFirst(2)))).isEmpty)
        #expect(wallsOfText(TrackedFile("a.swift", wall)).isEmpty)
    }
}
