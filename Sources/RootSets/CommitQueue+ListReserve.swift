import Core

// A removal for which no commit finds room: its list of freed pages gets the neighbouring pages that are kept for it
// (`ListReserve`).

extension CommitQueue {
    /// What the writer knows of the list reserve. Only its thread uses it.
    struct ListReserveState {
        /// From which number of commits on the reserve is looked after.
        var due: UInt64 = 0
        /// Whether a value was given up that was not taken again.
        var isGivenUp = false
    }

    /// The room of the next commit. Before, takes what the storage lacks of its reserve, in commits of its own, as far
    /// as there is room for it. What has no room is tried again some commits later.
    func roomBehindListReserve(_ environment: StorageEnvironment) throws(StorageFailure) -> CommitRoom {
        let room = try newRoom(environment)
        guard commits.load(ordering: .relaxed) >= listReserve.withLock({ $0.due }),
            room.lacksListReserve(try environment.listReserve())
        else { return room }
        do throws(StorageFailure) {
            if try takeListReserve(environment) { hasListReserve() } else { postponeListReserve() }
        } catch {
            guard error.isLackOfSpace else { throw error }
            postponeListReserve()
        }
        return try newRoom(environment)
    }

    /// Returns whether enough of it is there.
    private func takeListReserve(_ environment: StorageEnvironment) throws(StorageFailure) -> Bool {
        for _ in ListReserve.lasting where try !takeListReserveValue(environment) { return false }
        return try hasEnoughOfListReserve(environment)
    }

    private func hasEnoughOfListReserve(_ environment: StorageEnvironment) throws(StorageFailure) -> Bool {
        try newRoom(environment).hasEnoughOfListReserve(environment.listReserve())
    }

    private func hasListReserve() {
        listReserve.withLock { $0 = ListReserveState() }
    }

    private func postponeListReserve() {
        let next = commits.load(ordering: .relaxed) + ListReserve.commitsBetween
        listReserve.withLock { $0.due = next }
    }

    /// Takes one value of the reserve that is missing or too small, in a commit of its own, and gives up the rest of
    /// one that was used. Returns false when something is missing for which there is no room, or which a damaged
    /// storage may not take.
    private func takeListReserveValue(_ environment: StorageEnvironment) throws(StorageFailure) -> Bool {
        guard storage.health.refusalOfAdditions == nil else { return false }
        let present = try environment.listReserve()
        var room = try newRoom(environment)
        let isGivenUp = listReserve.withLock { $0.isGivenUp }
        // The smaller one: it gains the most.
        let part = present[.second, default: 0] < present[.first, default: 0] ? ListReserve.Part.second : .first
        let pages = try room.listReserve(insteadOf: present[part, default: 0], isGivenUp: isGivenUp)
        let taken = pages.flatMap { $0 > 0 ? $0 : nil }
        guard taken != nil || present[.rest] != nil else { return pages == nil }
        try commit(in: environment) { reserve throws(StorageFailure) in
            if let taken { try reserve.take(taken, for: part) }
            try reserve.giveUp(.rest)
        }
        return pages == nil || taken != nil
    }

    /// Calls `body`, which commits a removal, with the number of pages that it may hold for its list, and takes the
    /// reserve again. Returns `nil` when there is no reserve or it can't be used now. The next mutations are committed
    /// alone: each of them may need the reserve, so peers take turns with it.
    func withListReserve<R>(_ body: (_ pages: Int) throws(StorageFailure) -> R) throws(StorageFailure) -> R? {
        commitAloneForAWhile()
        guard let pages = try givenUpPages() else { return nil }
        defer {
            try? writing { environment throws(StorageFailure) in
                try takeListReserveAgain(environment, ListReserve.waitBehindMax)
            }
        }
        return pages > 0 ? try body(pages) : nil
    }

    /// See `giveUpListReserve`. `nil`: there was no room for the commits that it makes, either.
    private func givenUpPages() throws(StorageFailure) -> Int? {
        do throws(StorageFailure) {
            return try writing { environment throws(StorageFailure) in try giveUpListReserve(environment) }
        } catch {
            guard error.isLackOfSpace else { throw error }
            return nil
        }
    }

    /// Gives up the larger value. Returns how many pages the next commit finds side by side; 0 when it may use none,
    /// because somebody reads an older snapshot. `nil`: nothing was given up.
    private func giveUpListReserve(_ environment: StorageEnvironment) throws(StorageFailure) -> Int? {
        // Readers may have kept it behind the removal before.
        let isGivenUp = listReserve.withLock { $0.isGivenUp }
        if isGivenUp, storage.health.refusalOfAdditions == nil {
            try? takeListReserveAgain(environment, ListReserve.waitMax)
        }
        let present = try environment.listReserve()
        let largest = ListReserve.lasting.max { present[$0, default: 0] < present[$1, default: 0] }
        guard let largest, let pages = present[largest] else { return nil }
        // Readers of the snapshots so far would keep what is given up.
        guard try awaitReaders(environment, ListReserve.waitMax) else { return nil }
        try commit(in: environment) { reserve throws(StorageFailure) in try reserve.giveUp(largest) }
        // The removal uses it before it is looked after again.
        postponeListReserve()
        listReserve.withLock { $0.isGivenUp = true }
        guard try awaitReaders(environment, ListReserve.waitMax) else { return 0 }
        return try environment.freeRuns().has(pages, behind: ListReserve.pagesBefore) ? pages : 0
    }

    /// Takes the reserve again that was given up for a removal, and waits up to twice `limit` for readers. What can't
    /// be taken now is taken before a later commit, or before the next removal that needs it.
    private func takeListReserveAgain(
        _ environment: StorageEnvironment, _ limit: Duration
    ) throws(StorageFailure) {
        for _ in ListReserve.lasting {
            // No removal waits for it.
            guard try awaitReaders(environment, limit, takesBack: false), try takeListReserveValue(environment) else {
                return
            }
            if try hasEnoughOfListReserve(environment) { return hasListReserve() }
        }
    }

    /// Makes a commit, empty but for what asks backups and checks to end, and waits until nobody reads an older
    /// snapshot. If `takesBack`, the snapshots of those that have not ended then, as when they were stopped, are taken
    /// back; at once when the commit lacks space. Returns false when somebody still reads one: another
    /// program, or this process.
    func awaitReaders(
        _ environment: StorageEnvironment, _ limit: Duration, takesBack: Bool = true
    ) throws(StorageFailure) -> Bool {
        do throws(StorageFailure) {
            try askReaders(environment)
        } catch {
            guard error.isLackOfSpace, takesBack else { throw error }
            guard try takeBackSnapshots(environment) else { throw error }
            try askReaders(environment)
        }
        if try environment.waitForReaders(limit) { return true }
        guard takesBack else { return false }
        guard try takeBackSnapshots(environment) else { return false }
        return try environment.waitForReaders(limit)
    }

    private func askReaders(_ environment: StorageEnvironment) throws(StorageFailure) {
        try commit(in: environment) { reserve throws(StorageFailure) in try reserve.awaitReaders() }
        hasTriedEmptyCommit.store(true, ordering: .relaxed)
    }

    /// Returns whether somebody had an old snapshot that could be taken back.
    private func takeBackSnapshots(_ environment: StorageEnvironment) throws(StorageFailure) -> Bool {
        let processes = try environment.takeBackSnapshots()
        for process in processes {
            log(
                .warning,
                "a backup, a check or a reading of the log, process \(process), has lost what it reads, and has to "
                    + "begin anew: a change that must pass needs the pages kept for it")
        }
        return !processes.isEmpty
    }

    /// Ends the readings of other processes that keep pages from a change that must pass. Returns whether there were
    /// any that let go of them, so that the change may find room.
    func hasTakenBackSnapshots() throws(StorageFailure) -> Bool {
        noteWork()
        do throws(StorageFailure) {
            return try writing { environment throws(StorageFailure) in
                guard try environment.hasSnapshotsToTakeBack() else { return false }
                // When somebody still reads, or this fails, pages may be free all the same.
                _ = try awaitReaders(environment, ListReserve.waitMax)
                try? commitNothing(environment)
                return true
            }
        } catch {
            guard error.isLackOfSpace else { throw error }
            return false
        }
    }

    /// Commits what `body` changes in the reserve.
    private func commit(
        in environment: StorageEnvironment, _ body: (ListReserve) throws(StorageFailure) -> Void
    ) throws(StorageFailure) {
        let transaction = try WriteTransaction(in: environment, watch)
        try body(ListReserve(transaction, environment))
        try transaction.put(try transaction.totals(in: environment.meta), in: environment.meta)
        try commit(transaction, environment)
        hasTriedEmptyCommit.store(false, ordering: .relaxed)
    }
}
