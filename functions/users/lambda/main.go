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
	"gateway/shared/app/onaws/mails"
	"gateway/shared/host/administration"
)

func main() {
	mailer, err := mails.FromEnvironment(context.Background())
	if err != nil {
		slog.Error("the function cannot start", "error", err.Error())
		os.Exit(1)
	}
	d := users.Deps{PublicURL: os.Getenv(onaws.EnvPublicURL), Mailer: mailer}
	administration.Main(func(*app.Core) []admin.Family { return []admin.Family{users.New(d)} })
}
