package usage

import (
	"errors"
	"fmt"
	"strconv"
	"time"
)

// Retention is how long usage is stored; whole UTC days expire together. Zero means
// forever.
type Retention struct {
	Bodies  time.Duration // requests and responses
	Records time.Duration // records and their aggregates
}

// Defaults of an installation.
const (
	standardBodyDays   = 90
	standardRecordDays = 365
	maxRetentionDays   = 36_500
)

// ParseRetention parses the two settings of an installation, in days: "" is the default,
// 0 means forever. Bodies cannot outlive their records.
func ParseRetention(bodyDays, recordDays string) (Retention, error) {
	bodies, err := days(bodyDays, standardBodyDays)
	if err != nil {
		return Retention{}, fmt.Errorf("retention of bodies: %w", err)
	}
	records, err := days(recordDays, standardRecordDays)
	if err != nil {
		return Retention{}, fmt.Errorf("retention of records: %w", err)
	}
	if records > 0 && (bodies == 0 || bodies > records) {
		if bodyDays != "" {
			return Retention{}, errors.New("retention of bodies: cannot be longer than that of records")
		}
		bodies = records
	}
	return Retention{Bodies: bodies, Records: records}, nil
}

func days(text string, standard int) (time.Duration, error) {
	if text == "" {
		return time.Duration(standard) * secondsOfDay * time.Second, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 || n > maxRetentionDays {
		return 0, fmt.Errorf("must be 0 (for ever) to %d days", maxRetentionDays)
	}
	return time.Duration(n) * secondsOfDay * time.Second, nil
}
