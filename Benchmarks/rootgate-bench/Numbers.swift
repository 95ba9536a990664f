import Foundation
import LoadHarness

/// To three digits, with the thousands apart: 44,200; 1.23.
func rounded(_ value: Double) -> String {
    guard value.isFinite, value != 0, let short = Double(String(format: "%.2e", value)) else { return "0" }
    let decimals = 2 - Int(floor(log10(abs(short))))
    return decimals > 0 ? String(format: "%.*f", decimals, short) : grouped(Int(short))
}

/// 1234567 as 1,234,567.
func grouped(_ value: Int) -> String { value.inThousands }

/// With two decimals: 1.23.
func twoDecimals(_ value: Double) -> String { String(format: "%.2f", value) }
