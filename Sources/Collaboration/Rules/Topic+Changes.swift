package import Core

extension Topic {
    /// The topics that a change may be about, found by the records that it writes: for changes whose request was
    /// decided by another service. They contain those of the request's decision.
    package static func changed(by change: Change) -> Set<Topic> {
        guard case .edit(let edit) = change else { return [] }
        return changed(by: edit)
    }

    package static func changed(by edit: Edit) -> Set<Topic> {
        var topics: Set<Topic> = []
        if let collaboration = edit.collaboration { topics.insert(.collaboration(collaboration)) }
        for record in edit.records where !record.isCheck {
            if let topic = RecordKeys.topic(ofKey: record.key) { topics.insert(topic) }
        }
        for range in edit.removedRanges {
            if let topic = RecordKeys.topic(ofKey: range.start) { topics.insert(topic) }
        }
        return topics
    }
}
