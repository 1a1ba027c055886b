// Command lambda serves the family users as a function.
package main

import (
	"context"
	"log/slog"
	"os"

	"gateway/functions/users"
	"gateway/shared/admin"
	"gateway/shared/app"
	"gateway/shared/app/onaws"
	"gateway/shared/host/administration"
	"gateway/shared/notice/ses"
)

func main() {
	d := users.Deps{PublicURL: os.Getenv(onaws.EnvPublicURL)}
	if from := os.Getenv(onaws.EnvMailFrom); from != "" {
		cfg, err := onaws.Config(context.Background())
		if err != nil {
			slog.Error("the function cannot start", "error", err.Error())
			os.Exit(1)
		}
		d.Mailer = ses.New(cfg, ses.Options{From: from, Identity: os.Getenv(onaws.EnvMailIdentity)})
	}
	administration.Main(func(*app.Core) []admin.Family { return []admin.Family{users.New(d)} })
}
