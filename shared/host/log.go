package host

import (
	"log/slog"
	"os"
	"strings"
)

// EnvLogLevel is the variable with the least level of what is logged: debug, info,
// warn or error. On Lambda the platform's own AWS_LAMBDA_LOG_LEVEL says it.
const EnvLogLevel = "GATEWAY_LOG_LEVEL"

// LogJSON makes the log one JSON object a line with the names that Lambda reads:
// timestamp, level and message.
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

// logLevel is the first of the names that is a level, and info without one. Lambda
// has two more than slog: the nearest stands for them.
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
