import Core
import Testing

@Suite struct SharesTests {
    @Test("A peer alone gets half of all, each of two a third, and a newcomer finds as much as they have")
    func shares() {
        var places = PeerShares(capacity: 1200)
        let peers = (1...4).map { Holder.address(UInt32($0)) }
        for (others, peer) in peers.enumerated() {
            // The ones before take what their share is now, in small steps, as if all came at once.
            var held = [Int](repeating: 0, count: others + 1)
            var isTaken = true
            while isTaken {
                isTaken = false
                for index in 0...others where places.take(1, by: peers[index]) {
                    held[index] += 1
                    isTaken = true
                }
            }
            #expect(held.allSatisfy { abs($0 - 1200 / (others + 2)) <= 1 }, "\(held)")
            #expect(places.taken < 1200)
            let isMore = places.take(1, by: peer)
            #expect(!isMore)
            for index in 0...others { places.giveBack(held[index], by: peers[index]) }
        }
        #expect(places.taken == 0)
    }

    @Test("Places that cannot be halved go to the first who asks, and never more than there are")
    func fewPlaces() {
        for capacity in 0...5 {
            var places = PeerShares(capacity: capacity)
            var taken = 0
            for number in 0..<20 where places.take(1, by: .address(UInt32(number))) { taken += 1 }
            #expect(taken == capacity)
        }
    }

    @Test("What does not fit takes nothing")
    func refusal() {
        var places = PeerShares(capacity: 10)
        let (first, second) = (Holder.address(UInt32(1)), Holder.address(UInt32(2)))
        // What is asked for, whether it fits, and what is taken then.
        let steps = [(6, first, false, 0), (5, first, true, 5), (4, second, false, 5), (3, second, true, 8)]
        for (count, peer, fits, taken) in steps {
            let isTaken = places.take(count, by: peer)
            #expect(isTaken == fits && places.taken == taken)
        }
        places.giveBack(5, by: first)
        #expect(places.taken == 3)
        places.pass(from: second, to: first)
        #expect(places.taken == 3)
        places.giveBack(1, by: first)
        places.giveBack(2, by: second)
        #expect(places.taken == 0)
    }

    @Test("A peer gets back what it had, also when others have taken all of it, and nobody gets more before")
    func takingBack() {
        var places = PeerShares(capacity: 10)
        let (first, second) = (Holder.address(UInt32(1)), Holder.address(UInt32(2)))
        for (count, fits) in [(5, true), (1, false)] {
            let isTaken = places.take(count, by: first)
            #expect(isTaken == fits)
        }
        places.takeBack(9, by: second)
        #expect(places.taken == 14)
        for peer in [first, second] {
            let isTaken = places.take(1, by: peer)
            #expect(!isTaken)
        }
        places.giveBack(9, by: second)
        places.giveBack(5, by: first)
        #expect(places.taken == 0)
    }
}

@Suite struct PeerTests {
    @Test("The addresses of one IPv6 network are one peer, and a mapped IPv4 address is that address")
    func networks() {
        let network: UInt128 = 0x2001_0db8_0001_0002 << 64
        #expect(Holder.address(network + 1) == Holder.address(network + 0xffff_ffff_ffff_ffff))
        #expect(Holder.address(network) != Holder.address(network + 1 << 64))
        #expect(Holder.address(UInt128(0xffff_c000_0201)) == Holder.address(UInt32(0xc000_0201)))
        #expect(Holder.address(UInt32(1)) != Holder.address(UInt32(2)))
        #expect(Holder.address(UInt32(7)) != Holder.user(7) && Holder.user(7) != Holder.principal(7))
    }

    @Test("Loopback addresses are single peers of this machine")
    func loopback() {
        let (first, second) = (Holder.address(UInt32(0x7f00_0001)), Holder.address(UInt32(0x7f00_0002)))
        #expect(first != second && first.isLocal && second.isLocal)
        #expect(Holder.address(UInt128(1)).isLocal && Holder.address(UInt128(1)) != Holder.address(UInt128(2)))
        #expect(!Holder.address(UInt128(2)).isLocal && !Holder.address(UInt32(0x8000_0001)).isLocal)
        #expect(Holder.user(1000).isLocal && !Holder.principal(1).isLocal)
    }
}
