package host

import (
	"log/slog"
	"testing"
)

func TestLogLevel(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		own, platform string
		want          slog.Level
	}{
		{"", "", slog.LevelInfo}, {"debug", "", slog.LevelDebug}, {"INFO", "", slog.LevelInfo}, {"Warn", "", slog.LevelWarn}, {"error", "", slog.LevelError},
		{"", "TRACE", slog.LevelDebug}, {"", "DEBUG", slog.LevelDebug}, {"", "WARN", slog.LevelWarn}, {"", "FATAL", slog.LevelError},
		{"error", "DEBUG", slog.LevelError}, {"loud", "WARN", slog.LevelWarn}, {"loud", "", slog.LevelInfo},
	} {
		if got := logLevel(c.own, c.platform); got != c.want {
			t.Errorf("%q and %q: %v", c.own, c.platform, got)
		}
	}
}
