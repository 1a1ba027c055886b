package usage

import (
	"math"
	"time"
)

// WorkspaceRetention is the number of days for which an organization's workspaces store
// their logs, if that is shorter than the installation's retention of records; zero means
// not shorter. As with Retention, whole UTC days expire together.
type WorkspaceRetention struct {
	Standard int            // of every workspace that is not in Of
	Of       map[string]int // by workspace id
}

// HasOverrides reports whether any workspace has a retention shorter than the
// installation's.
func (k *WorkspaceRetention) HasOverrides() bool {
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

// Days returns for how many days a workspace stores its logs.
func (k *WorkspaceRetention) Days(workspace string) int {
	if days, ok := k.Of[workspace]; ok {
		return days
	}
	return k.Standard
}

// Cutoff returns the time of a workspace's oldest retained record, in microseconds since
// 1970.
func (k *WorkspaceRetention) Cutoff(workspace string, now time.Time) int64 {
	days := k.Days(workspace)
	if days <= 0 {
		return math.MinInt64
	}
	at := now.Unix() - int64(days)*secondsOfDay
	return (at - at%secondsOfDay) * 1_000_000
}
