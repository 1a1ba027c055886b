package host

import (
	"log/slog"
	"os"
)

// LogJSON makes the log one JSON object a line with the names that Lambda reads:
// timestamp, level and message.
func LogJSON() {
	slog.SetDefault(slog.New(slog.NewJSONHandler(os.Stderr, &slog.HandlerOptions{
		ReplaceAttr: func(groups []string, a slog.Attr) slog.Attr {
			if len(groups) == 0 {
				switch a.Key {
				case slog.TimeKey:
					a.Key = "timestamp"
				case slog.MessageKey:
					a.Key = "message"
				}
			}
			return a
		},
	})))
	QuietLog()
}
