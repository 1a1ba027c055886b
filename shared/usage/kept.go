package usage

import (
	"math"
	"time"
)

// KeptDays is for how many days the workspaces of an organisation keep their logs, where
// that is shorter than the installation keeps records; 0: not shorter. As with Retention,
// whole days of UTC go at once.
type KeptDays struct {
	Standard int            // of every workspace that is not in Of
	Of       map[string]int // of workspaces, by id
}

// Any tells whether some workspace keeps its logs for a time of its own.
func (k *KeptDays) Any() bool {
	if k.Standard > 0 {
		return true
	}
	for _, days := range k.Of {
		if days > 0 {
			return true
		}
	}
	return false
}

// Days is for how many days a workspace keeps its logs.
func (k *KeptDays) Days(workspace string) int {
	if days, ok := k.Of[workspace]; ok {
		return days
	}
	return k.Standard
}

// First is the time, in microseconds since 1970, from which on records of a workspace
// are kept.
func (k *KeptDays) First(workspace string, now time.Time) int64 {
	days := k.Days(workspace)
	if days <= 0 {
		return math.MinInt64
	}
	at := now.Unix() - int64(days)*secondsOfDay
	return (at - at%secondsOfDay) * 1_000_000
}
