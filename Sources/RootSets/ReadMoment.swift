package import Core

/// As of when a reading saw all of the log that its storage shares. It is taken before the snapshot that is read, and
/// checked when the answer leaves: then the snapshot holds at least what was in the log at that time.
package enum ReadMoment: Sendable {
    /// The storage shares no log, so a reading is never too old.
    case always
    /// In milliseconds of the log's clock; `nil`: the storage has not heard of the log yet.
    case asOf(UInt64?)

    /// Whether a reading as of that moment has everything that was in the log at a time.
    package func has(_ time: UInt64) -> Bool {
        switch self {
        case .always: true
        case .asOf(let asOf): asOf.map { time <= $0 } ?? false
        }
    }

    /// The older one of two moments.
    package func older(than other: ReadMoment) -> ReadMoment {
        switch (self, other) {
        case (.always, _): other
        case (_, .always): self
        case (.asOf(let one?), .asOf(let another?)): .asOf(min(one, another))
        case (.asOf, .asOf): .asOf(nil)
        }
    }
}

extension RootSets {
    /// To be taken before the snapshot of a reading whose answer must not be too old.
    package var moment: ReadMoment {
        shared == nil ? .always : .asOf(freshAsOf)
    }

    /// Throws `stale` when a reading that began at that moment may lack a removal that somebody relies on. To be asked
    /// as late as possible: a process that was stopped in between must not answer what was true before.
    package func checkFresh(_ moment: ReadMoment) throws(ServiceError) {
        guard case .asOf(let asOf) = moment, let shared else { return }
        let now = shared.now
        guard let asOf else {
            throw ServiceError(
                .stale, "it is not known yet what other services have changed: ask another one, or later")
        }
        guard shared.isRecent(asOf, at: now) else {
            throw ServiceError(
                .stale,
                "what other services have changed in the last \(now - min(now, asOf)) ms may not be known here: ask "
                    + "another one, or later")
        }
    }

    /// Whether readings that begin now are new enough.
    package var isFresh: Bool {
        do throws(ServiceError) {
            try checkFresh(moment)
            return true
        } catch {
            return false
        }
    }
}
