package host

import (
	"log/slog"
	"os"
	"strings"
)

// EnvLogLevel is the variable with the minimum level of the log: debug, info, warn or
// error. On Lambda AWS_LAMBDA_LOG_LEVEL sets it.
const EnvLogLevel = "GATEWAY_LOG_LEVEL"

// LogJSON configures the log as one JSON object per line with the names that Lambda
// reads: timestamp, level and message.
func LogJSON() {
	slog.SetDefault(slog.New(slog.NewJSONHandler(os.Stderr, &slog.HandlerOptions{
		Level: logLevel(os.Getenv(EnvLogLevel), os.Getenv("AWS_LAMBDA_LOG_LEVEL")),
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

// logLevel returns the first of the names that is a level, or info. Lambda's two
// additional levels map to the nearest level of slog.
func logLevel(names ...string) slog.Level {
	for _, name := range names {
		switch strings.ToLower(name) {
		case "trace", "debug":
			return slog.LevelDebug
		case "info":
			return slog.LevelInfo
		case "warn":
			return slog.LevelWarn
		case "error", "fatal":
			return slog.LevelError
		}
	}
	return slog.LevelInfo
}
