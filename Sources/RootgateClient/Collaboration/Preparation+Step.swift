import Collaboration
import Core

extension Preparation {
    /// A request of a preparation, which is repeated with the same identifier.
    struct Step: Sendable {
        /// What is known of the request.
        enum Outcome: Sendable {
            /// It may have been carried out, or may still be. `error`: what it got; `nil`: nothing yet.
            case open(after: ServiceError?)
            /// It was refused, or its effect is gone.
            case withoutEffect
            case answered(CollaborationIdentifier, isNew: Bool)
        }

        let request: PrepareCollaboration
        private(set) var outcome = Outcome.open(after: nil)
        private let identifier = MutationIdentifier.random()

        init(_ request: PrepareCollaboration) {
            self.request = request
        }

        /// Sends the request, and notes what came of it.
        mutating func carryOut(by client: RootgateClient) async throws(ServiceError) -> PrepareCollaboration.Answer {
            do throws(ServiceError) {
                let answer = try await client.send(request, identifier: identifier)
                outcome = .answered(answer.collaborationIdentifier, isNew: answer.isNew)
                return answer
            } catch {
                outcome = error.leavesChangeOpen ? .open(after: error) : .withoutEffect
                throw error
            }
        }

        /// What is known of the request after it was sent once more, if it was open.
        func settled(by client: RootgateClient) async -> Outcome {
            guard case .open(let first) = outcome else { return outcome }
            do throws(ServiceError) {
                let answer = try await client.send(request, identifier: identifier)
                return .answered(answer.collaborationIdentifier, isNew: answer.isNew)
            } catch {
                return error.tellsOfNoChange(after: first) ? .withoutEffect : outcome
            }
        }

        /// Whether it is the same request, whatever is known of it.
        func isSame(as other: Step) -> Bool { identifier == other.identifier }
    }
}
