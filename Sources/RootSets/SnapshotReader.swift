/// Somebody in another process who reads a snapshot of a storage, as a backup does.
struct SnapshotReader: Equatable {
    /// LMDB's number of the commit that is read.
    let snapshot: Int
    /// The number of the process.
    let process: Int

    /// What to do when the pages that it holds are lacking.
    var remedy: String {
        "what is removed makes no room while process \(process) reads an old state of the storage; end it, or let it "
            + "go on if it was stopped"
    }

    init(snapshot: Int, process: Int) {
        (self.snapshot, self.process) = (snapshot, process)
    }

    /// Reads a line of LMDB's list of readers: process, thread and commit. `nil` when the line is the heading, or when
    /// that reader reads nothing now.
    init?(line: String) {
        let words = line.split(whereSeparator: \.isWhitespace)
        guard words.count == 3, let process = Int(words[0]), let snapshot = Int(words[2]) else { return nil }
        self.init(snapshot: snapshot, process: process)
    }
}

/// The pages that commits have freed since somebody in another process began to read: no commit may take them before
/// the end of that.
struct HeldPages {
    /// Whose these are; `nil`: nobody's.
    private(set) var holder: SnapshotReader?
    /// The last commit whose freed pages are in `count`.
    private(set) var last = 0
    private(set) var count = 0

    /// Notes who reads the oldest snapshot now. Nothing is counted of a new one.
    mutating func note(_ reader: SnapshotReader?) {
        guard reader != holder else { return }
        (holder, last, count) = (reader, 0, 0)
    }

    /// Counts the pages that a commit has freed. Returns false when they were counted before, or when the holder's
    /// snapshot does not need them. None of them is taken while the holder reads, so each commit is counted once.
    mutating func add(_ pages: Int, freedBy commit: Int, before: Int) -> Bool {
        guard let holder, commit >= holder.snapshot, commit > before else { return false }
        last = max(last, commit)
        count += pages
        return true
    }
}
