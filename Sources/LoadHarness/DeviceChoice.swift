/// Which devices of a population send the next proofs.
package struct DeviceChoice: Sendable {
    private enum Order {
        /// One after the other; the number of the next.
        case inTurn(Int)
        /// Some collaborations and people are chosen more often than others.
        case skewed(collaborations: Popularity, people: Popularity)
    }

    private let population: Population
    private var order: Order
    private var random: any RandomNumberGenerator & Sendable

    /// `skew`: the exponent of Zipf's law, by which collaborations are chosen, and then people of the chosen one; the
    /// person's devices are chosen alike. 0: all devices take turns.
    package init(
        _ population: Population, skew: Double,
        random: any RandomNumberGenerator & Sendable = SystemRandomNumberGenerator()
    ) {
        self.population = population
        self.random = random
        guard skew > 0 else {
            order = .inTurn(0)
            return
        }
        order = .skewed(
            collaborations: Popularity(count: population.collaborations.count, exponent: skew),
            people: Popularity(count: population.membersMax, exponent: skew))
    }

    /// The next device, as positions of a person and of a device of that person.
    package mutating func next() -> (person: Int, device: Int) {
        switch order {
        case .inTurn(let number):
            order = .inTurn(number + 1)
            let devices = population.devices
            return devices[number % devices.count]
        case .skewed(let collaborations, let people):
            let collaboration = collaborations.choice(.random(in: 0..<1, using: &random))
            var member = people.choice(.random(in: 0..<1, using: &random))
            // Some collaborations have one member less.
            while member >= population.members(of: collaboration) {
                member = people.choice(.random(in: 0..<1, using: &random))
            }
            let person = population.person(member, of: collaboration)
            return (person, .random(in: 0..<population.people[person].keys.count, using: &random))
        }
    }
}
