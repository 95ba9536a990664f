import Core
import Foundation
import RootgateClient

/// Everything that `rootgate collab` does, in the order of a collaboration's life.
let collabVerbs: [CollabVerb] =
    rootSetVerbs + sharingVerbs + participantVerbs + noticeVerbs + shelfVerbs + invitationVerbs + transferVerbs
