package main

import (
	"strings"
	"testing"

	"gateway/shared/testkit/idptest"
)

// peersIn is the folder of the npm packages that are clients of the gateway.
const peersIn = "../scripts/clients"

// peers runs a program of scripts/clients/signin against a gateway.
func peers(t *testing.T, r *running, file string, env ...string) {
	t.Helper()
	idptest.RunClient(t, peersIn, file, append(env, "GATEWAY_URL="+r.base, "GATEWAY_ADMIN_KEY="+adminKey)...)
}

func TestPeopleSignInByAStrictProvider(t *testing.T) {
	t.Parallel()
	idptest.RequireClients(t, peersIn, "oidc-provider")
	peers(t, newEntrance(t).running, "oidc_provider.test.mjs")
}

func TestStrictClientsSignInHere(t *testing.T) {
	t.Parallel()
	idptest.RequireClients(t, peersIn, "openid-client", "oauth4webapi", "oidc-provider")
	l := newLobby(t)
	peers(t, l.running, "strict_clients.test.mjs", "SESSION="+l.session, "RESOURCE="+l.resource)
}

func TestABrowserSignsIn(t *testing.T) {
	t.Parallel()
	idptest.WithBrowser(t, peersIn, "oidc-provider")
	peers(t, newEntrance(t).running, "browser.test.mjs")
}

// TestABrowserSignsInBySAML at a provider of another site than the gateway's.
func TestABrowserSignsInBySAML(t *testing.T) {
	t.Parallel()
	idptest.WithBrowser(t, peersIn)
	idp := idptest.StartSAML(t, "../scripts/testdeps", "https://idp.example.com/entity")
	peers(t, newEntrance(t).running, "saml.test.mjs", "SAML_PROVIDER="+strings.Replace(idp.URL, "127.0.0.1", "localhost", 1))
}
