//! Time in Kubernetes' notation.

use std::time::{SystemTime, UNIX_EPOCH};

/// The time of day in UTC with microseconds, in RFC 3339.
#[must_use]
pub fn now() -> String {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    to_rfc3339(since_epoch.as_secs(), since_epoch.subsec_micros())
}

fn to_rfc3339(seconds: u64, microseconds: u32) -> String {
    let (year, month, day) = date_of(seconds / 86_400);
    let second = seconds % 86_400;
    let mut text = String::with_capacity(27);
    for (number, width, end) in [
        (year, 4, '-'),
        (month, 2, '-'),
        (day, 2, 'T'),
        (second / 3600, 2, ':'),
        (second / 60 % 60, 2, ':'),
        (second % 60, 2, '.'),
        (u64::from(microseconds), 6, 'Z'),
    ] {
        for place in (0..width).rev() {
            text.push(char::from(b'0' + (number / 10u64.pow(place) % 10) as u8));
        }
        text.push(end);
    }
    text
}

/// The date so many days after 1970-01-01, in years that begin in March, which puts the leap day last.
fn date_of(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468; // Since 0000-03-01.
    let era = days / 146_097; // Of 400 years.
    let day_of_era = days % 146_097;
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = (month_from_march + 2) % 12 + 1;
    (era * 400 + year_of_era + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_moments() {
        for (seconds, microseconds, text) in [
            (0, 0, "1970-01-01T00:00:00.000000Z"),
            (951_782_399, 999_999, "2000-02-28T23:59:59.999999Z"),
            (951_782_400, 1, "2000-02-29T00:00:00.000001Z"),
            (951_868_800, 0, "2000-03-01T00:00:00.000000Z"),
            (1_735_689_599, 0, "2024-12-31T23:59:59.000000Z"),
            (1_735_689_600, 0, "2025-01-01T00:00:00.000000Z"),
            (4_107_542_400, 0, "2100-03-01T00:00:00.000000Z"),
        ] {
            assert_eq!(to_rfc3339(seconds, microseconds), text);
        }
    }
}
