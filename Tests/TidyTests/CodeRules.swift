/// Files that may import OpenSSL, LMDB, the kernels or what only Linux has. Everywhere else these stay out of sight.
let filesThatImportC: Set<String> = [
    "Benchmarks/rootgate-bench/HashBenchmarks.swift",
    "Benchmarks/rootgate-bench/Machine.swift",
    "Benchmarks/rootgate-bench/MutationBenchmarks.swift",
    "Benchmarks/rootgate-bench/StorageBenchmarks.swift",
    "Sources/Hashing/BatchHashing.swift",
    "Sources/Hashing/HashSelfTest.swift",
    "Sources/Hashing/KeyDerivation.swift",
    "Sources/Hashing/Libcrypto.swift",
    "Sources/Hashing/MessageAuthenticator.swift",
    "Sources/Hashing/SHA256.swift",
    "Sources/Identity/SimulatedAuthority.swift",
    "Sources/Kernels/Kernel.swift",
    "Sources/Kernels/ProcessorFeatures.swift",
    "Sources/LoadHarness/BareVerification.swift",
    "Sources/Platform/Linux.swift",
    "Sources/Platform/Linux/Landlock.swift",
    "Sources/Platform/Linux/SystemCallFilter.swift",
    "Sources/Platform/Linux/System+Sandbox.swift",
    "Sources/RootSets/Applier+Records.swift",
    "Sources/RootSets/Applier.swift",
    "Sources/RootSets/BucketDirectory.swift",
    "Sources/RootSets/CollaborationLookup.swift",
    "Sources/RootSets/CommitQueue.swift",
    "Sources/RootSets/Databases.swift",
    "Sources/RootSets/PackedRoots.swift",
    "Sources/RootSets/ReadCursor.swift",
    "Sources/RootSets/ReadTransaction.swift",
    "Sources/RootSets/Snapshot.swift",
    "Sources/RootSets/StorageEnvironment.swift",
    "Sources/RootSets/StorageFailure.swift",
    "Sources/RootSets/StorageGuard.swift",
    "Sources/RootSets/StorageFormat.swift",
    "Sources/RootSets/StorageWalk.swift",
    "Sources/RootSets/UnfinishedStorage.swift",
    "Sources/RootSets/WriteTransaction.swift",
    "Sources/Signatures/CurveKey.swift",
    "Sources/Signatures/CurveLibrary.swift",
    "Sources/Signatures/EquippedKernel.swift",
    "Sources/Signatures/GeneratorTable.swift",
    "Sources/Signatures/Integer.swift",
    "Sources/Signatures/KernelTrial.swift",
    "Sources/Signatures/KnownKeys.swift",
    "Sources/Signatures/LibcryptoVerifier.swift",
    "Sources/Signatures/PrivateKey.swift",
    "Sources/Signatures/SignatureCases.swift",
    "Sources/Signatures/SignatureKernel.swift",
    "Sources/Signatures/SignatureSelfTest.swift",
    "Sources/Signatures/SignatureTiming.swift",
    "Sources/Signatures/SignatureValue.swift",
    "Sources/Signatures/SignatureVerifier.swift",
    "Sources/TLS/CertificateReader.swift",
    "Sources/TLS/ErrorQueue.swift",
    "Sources/TLS/Handshake.swift",
    "Sources/TLS/RefusalReason.swift",
    "Sources/TLS/SessionStore.swift",
    "Sources/TLS/RecordAllowance.swift",
    "Sources/TLS/SocketMethod.swift",
    "Sources/TLS/TLSContext+Files.swift",
    "Sources/TLS/TLSContext.swift",
    "Sources/TLS/TLSStream.swift",
    "Tests/CKernelsTests/FieldTests.swift",
    "Tests/CKernelsTests/HashKernelTests.swift",
    "Tests/CKernelsTests/IntegerArithmetic.swift",
    "Tests/CKernelsTests/Kernels.swift",
    "Tests/CKernelsTests/OperationCountTests.swift",
    "Tests/CKernelsTests/ProofTests.swift",
    "Tests/CKernelsTests/SelfTestTests.swift",
    "Tests/CKernelsTests/SignatureKernelTests.swift",
    "Tests/CKernelsTests/TableTests.swift",
    "Tests/CStorageGuardTests/StorageGuardTests.swift",
    "Tests/FuzzingTests/FuzzedKeys.swift",
    "Tests/FuzzingTests/FuzzedSignatures.swift",
    "Tests/HashingTests/HashingTests.swift",
    "Tests/KernelsTests/KernelChoiceTests.swift",
    "Tests/RootSetsTests/DataFileTests.swift",
    "Tests/RootSetsTests/FsckFindingsTests.swift",
    "Tests/SandboxProbe/Attempt.swift",
    "Tests/SignaturesTests/KernelSelectionTests.swift",
    "Tests/SignaturesTests/OwnershipTests.swift",
    "Tests/SignaturesTests/SignatureEngineTests.swift",
    "Tests/TLSTests/SessionStoreTests.swift",
    "Tests/TestSupport/ProofOracle.swift",
]

/// Functions of LMDB that read no page of the file, so damage can't stop them.
private let harmlessCalls: Set<String> = [
    "mdb_cursor_close", "mdb_env_create", "mdb_env_get_fd", "mdb_env_set_maxdbs", "mdb_env_set_maxreaders",
    "mdb_strerror", "mdb_txn_id",
]

/// Calls of LMDB that don't come back after a fault: StorageGuard.swift has no function of that name.
func unguardedCalls(_ files: [TrackedFile]) -> [Violation] {
    let guardPath = "Sources/RootSets/StorageGuard.swift"
    var guarded: Set<String> = []
    for file in files where file.path == guardPath {
        let code = file.codeWords
        for (keyword, name) in zip(code, code.dropFirst()) where keyword.text == "func" { guarded.insert(name.text) }
    }
    return files.filter { $0.path.hasPrefix("Sources/RootSets/") && $0.kind == .swift && $0.path != guardPath }
        .flatMap { file in
            file.codeWords.filter { word in
                word.text.hasPrefix("mdb_") && !guarded.contains(word.text) && !harmlessCalls.contains(word.text)
            }.map { Violation(file.path, line: $0.line, "\($0.text) without a guard") }
        }
}

/// The files whose types own raw memory, and how many calls free it in all of them.
let ownersOfMemory: Set<String> = [
    "Sources/Core/Lock.swift",
    "Sources/Core/ScratchBuffer.swift",
    "Sources/Signatures/KnownKeys.swift",
    "Tests/CKernelsTests/SignatureKernelTests.swift",
    "Tests/CKernelsTests/TableTests.swift",
]
let deallocationsMax = 12

private let cModules: Set<String> = ["COpenSSL", "CLibSSL", "CLMDB", "CStorageGuard", "CKernels", "CLinux"]

/// Imports of C modules by files that may not, and files that may and don't.
func misplacedImports(_ files: [TrackedFile], allowed: Set<String>) -> [Violation] {
    var found: [Violation] = []
    var importing: Set<String> = []
    for file in files where file.kind == .swift {
        let code = file.codeWords
        for (keyword, module) in zip(code, code.dropFirst())
        where keyword.text == "import" && cModules.contains(module.text) {
            importing.insert(file.path)
            if !allowed.contains(file.path) {
                found.append(Violation(file.path, line: keyword.line, "imports \(module.text) and is not listed"))
            }
        }
    }
    return found + allowed.subtracting(importing).sorted().map { Violation($0, "is listed and imports no C module") }
}

/// Calls that free memory, in files that own none; more than `max` of them; owners that free nothing.
func misplacedDeallocations(_ files: [TrackedFile], owners: Set<String>, max: Int) -> [Violation] {
    var found: [Violation] = []
    var freeing: Set<String> = []
    var count = 0
    for file in files where file.kind == .swift {
        for word in file.codeWords where word.text == "deallocate" && isMember(word, of: file.code) {
            count += 1
            freeing.insert(file.path)
            if !owners.contains(file.path) {
                found.append(Violation(file.path, line: word.line, "frees memory and is not listed as an owner"))
            }
        }
    }
    if count > max { found.append(Violation("Sources", "\(count) calls free memory; \(max) are allowed")) }
    return found + owners.subtracting(freeing).sorted().map { Violation($0, "is listed as an owner and frees nothing") }
}

private func isMember(_ word: Word, of code: [UInt8]) -> Bool {
    word.offset > 0 && code[word.offset - 1] == UInt8(ascii: ".")
}

/// Swift's `Mutex`, where ThreadSanitizer would not see who waits for whom. `Lock` is what it sees.
func hiddenLocks(_ file: TrackedFile) -> [Violation] {
    guard file.kind == .swift, file.path != "Sources/Core/Lock.swift" else { return [] }
    return file.codeWords.filter { $0.text == "Mutex" }.map {
        Violation(file.path, line: $0.line, "Mutex instead of Lock")
    }
}

/// Locks whose values are functions, or optionals or tuples with one: see `Lock`.
func lockedFunctions(_ files: [TrackedFile]) -> [Violation] {
    let codes = files.filter { $0.kind == .swift }.map { ($0.path, String(decoding: $0.code, as: UTF8.self)) }
    let functions = codes.flatMap { _, code in
        code.matches(of: /typealias (\w+) =[^\n]*->/).map { String($0.output.1) }
    }
    return codes.flatMap { path, code in
        code.matches(of: /\bLock</).compactMap { match in
            let value = ownText(ofArgument: code[match.range.upperBound...])
            let words = value.split { !$0.isLetter && $0 != "_" && !$0.isNumber }.map(String.init)
            guard value.contains("->") || words.contains(where: functions.contains) else { return nil }
            let line = code[..<match.range.lowerBound].count { $0 == "\n" } + 1
            return Violation(path, line: line, "a lock has a function that is in no struct")
        }
    }
}

/// The text from the beginning of a generic argument to its end, without what is in brackets: elements of a container
/// and arguments of another type.
private func ownText(ofArgument text: Substring) -> String {
    var (depth, own) = (0, "")
    for (previous, character) in zip(" " + text, text) {
        switch character {
        case "[", "<": depth += 1
        case "]": depth -= 1
        case ">" where previous != "-":
            depth -= 1
            if depth < 0 { return own }
        default: break
        }
        if depth == 0 { own.append(character) }
    }
    return own
}

/// `try!` and `as!`; `print` in a layer; failures without a reason.
func bannedCalls(_ file: TrackedFile) -> [Violation] {
    guard file.kind == .swift else { return [] }
    let isLayer = file.path.hasPrefix("Sources/") && !file.path.hasPrefix("Sources/rootgate/")
    let failures: Set<String> = ["fatalError", "preconditionFailure", "assertionFailure"]
    return file.codeWords.compactMap { word in
        let rest = file.code[(word.offset + word.text.utf8.count)...].prefix(2)
        if word.text == "try" || word.text == "as", rest.first == UInt8(ascii: "!") {
            return Violation(file.path, line: word.line, "\(word.text)!")
        }
        if isLayer, word.text == "print", rest.first == UInt8(ascii: "("), !isMember(word, of: file.code) {
            return Violation(file.path, line: word.line, "print in a layer")
        }
        if failures.contains(word.text), Array(rest) == Array("()".utf8) {
            return Violation(file.path, line: word.line, "\(word.text) without a reason")
        }
        return nil
    }
}

private let drawers = ["Util", "Utils", "Utilities", "Manager", "Helper", "Helpers"]
private let declaring: Set<String> = ["struct", "class", "enum", "actor", "protocol", "typealias", "extension"]

/// Files and types named after a drawer for odds and ends: `Utils`, `Manager`, `Helper` and their like.
func drawerNames(_ file: TrackedFile) -> [Violation] {
    func isDrawer(_ name: String) -> Bool { drawers.contains { name.hasSuffix($0) } }
    var found: [Violation] = []
    let stem = file.name.split(separator: ".").first.map(String.init) ?? ""
    if file.isCode, isDrawer(stem) || drawers.contains(where: { stem.lowercased() == $0.lowercased() }) {
        found.append(Violation(file.path, "the file is named \(file.name)"))
    }
    guard file.kind == .swift else { return found }
    let code = file.codeWords
    for (keyword, name) in zip(code, code.dropFirst())
    where declaring.contains(keyword.text) && isDrawer(name.text) && name.text != "FileManager" {
        found.append(Violation(file.path, line: name.line, "a type is named \(name.text)"))
    }
    return found
}

/// Public declarations of the client library that no documentation comment precedes.
func undocumentedDeclarations(_ file: TrackedFile) -> [Violation] {
    guard file.path.hasPrefix("Sources/RootgateClient/"), file.kind == .swift else { return [] }
    var found: [Violation] = []
    for (index, line) in file.lines.enumerated() {
        let text = line.drop { $0 == " " }
        guard text.hasPrefix("public "), !text.hasPrefix("public import ") else { continue }
        // Attributes may stand between a comment and what it documents.
        let before = file.lines[..<index].last { !$0.drop { $0 == " " }.hasPrefix("@") } ?? ""
        if !before.drop(while: { $0 == " " }).hasPrefix("///") {
            found.append(Violation(file.path, line: index + 1, "no documentation: \(text.prefix(60))"))
        }
    }
    return found
}

/// Tests without a display name, or with one that is no sentence.
func testNames(_ file: TrackedFile) -> [Violation] {
    guard file.path.hasPrefix("Tests/"), file.kind == .swift else { return [] }
    return file.codeWords.compactMap { word in
        guard word.text == "Test", word.offset > 0, file.code[word.offset - 1] == UInt8(ascii: "@") else { return nil }
        // In the text itself: a literal is not code.
        let behind = file.bytes[(word.offset + 4)...].drop { [UInt8(ascii: "("), 10, 32].contains($0) }
        guard behind.first == UInt8(ascii: "\"") else {
            return Violation(file.path, line: word.line, "a test without a sentence as its name")
        }
        let name = String(decoding: behind.dropFirst().prefix { $0 != UInt8(ascii: "\"") && $0 != 10 }, as: UTF8.self)
        return isSentence(name) ? nil : Violation(file.path, line: word.line, "“\(name)” is no sentence")
    }
}

/// Whether a name is a sentence: a capital letter or a number first, several words, no full stop.
private func isSentence(_ name: String) -> Bool {
    guard let first = name.first else { return false }
    return (first.isUppercase || first.isNumber) && name.contains(" ") && name.last != "."
}
