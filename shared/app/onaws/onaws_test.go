package onaws

import (
	"fmt"
	"strings"
	"testing"
)

// clearEnv makes an environment without an installation. AWS's own variables
// stand where nothing answers: opening makes no call.
func clearEnv(t *testing.T) {
	t.Helper()
	for _, name := range []string{
		EnvTablePrefix, EnvBucket, EnvAuditQueue, EnvUsageQueue, EnvRunQueue, EnvKey, EnvFormerKeys, EnvOriginSecrets, EnvEgress, EnvTrustedHosts, EnvBlockInline,
	} {
		t.Setenv(name, "")
	}
	t.Setenv("AWS_REGION", "eu-west-1")
	t.Setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
	t.Setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
}

func TestMissingVariablesAreNamedTogether(t *testing.T) {
	clearEnv(t)
	_, err := Open(t.Context(), Bucket, AuditQueue, UsageQueue, Keys, RunQueue)
	if err == nil {
		t.Fatal("opened without anything")
	}
	for _, name := range []string{EnvBucket, EnvAuditQueue, EnvUsageQueue, EnvKey, EnvRunQueue} {
		if !strings.Contains(err.Error(), name) {
			t.Errorf("%s is not named: %v", name, err)
		}
	}
}

func TestOnlyNamedPartsAreOpened(t *testing.T) {
	clearEnv(t)
	t.Setenv(EnvUsageQueue, "http://127.0.0.1:1/123456789012/usage")
	t.Setenv(EnvBlockInline, "true")
	in, err := Open(t.Context(), UsageQueue)
	if err != nil {
		t.Fatal(err)
	}
	if in.Store == nil || in.Usage == nil || in.Sink == nil || !in.BlockInline {
		t.Errorf("%+v", in)
	}
	if in.Audit != nil || in.Sender != nil || in.Bucket != nil || in.Sealer != nil {
		t.Errorf("parts that nobody named: %+v", in.Backends)
	}
	if in.recorder() != nil {
		t.Error("a recorder without a queue")
	}
}

func TestUnknownPartIsAnError(t *testing.T) {
	clearEnv(t)
	if _, err := Open(t.Context(), Part(99)); err == nil {
		t.Error("opened")
	}
}

func TestOriginSecrets(t *testing.T) {
	for value, want := range map[string]int{"": -1, " , ": -1, "off": 0, "a": 1, "a,b": 2, " a , ": 1, "a,off": 2, "a,b,c": -1} {
		t.Setenv(EnvOriginSecrets, value)
		got, err := OriginSecrets()
		if err != nil && want >= 0 || err == nil && len(got) != want {
			t.Errorf("%q: %d values, %v", value, len(got), err)
		}
	}
}

func TestEgressOfAnInstallation(t *testing.T) {
	clearEnv(t)
	p, err := policy()
	if err != nil || len(p.Allow) != 0 {
		t.Errorf("%+v, %v", p, err)
	}
	t.Setenv(EnvEgress, "10.0.0.0/8")
	t.Setenv(EnvTrustedHosts, "models.example.com")
	if p, err = policy(); err != nil || len(p.Allow) != 1 || len(p.TrustedHosts) != 1 {
		t.Errorf("%+v, %v", p, err)
	}
	t.Setenv(EnvEgress, "nonsense")
	if _, err = Open(t.Context()); err == nil || !strings.Contains(err.Error(), EnvEgress) {
		t.Errorf("%v", err)
	}
}

// A context value of the stacks chooses where vectors stand.
func TestVectorsAreInOneStore(t *testing.T) {
	for name, c := range map[string]struct{ bucket, table, dimensions, kind, message string }{
		"tables":             {kind: "<nil>"},
		"bucket":             {bucket: "vectors", kind: "*s3vectors.Index"},
		"table":              {table: "arn:aws:dynamodb:eu-west-1:1:table/v", dimensions: "1536, 3072", kind: "*dynamovectors.Index"},
		"both":               {bucket: "vectors", table: "t", dimensions: "2", message: EnvVectorBucket},
		"no dimensions":      {table: "t", message: EnvVectorDimensions},
		"dimensions of text": {table: "t", dimensions: "many", message: "1 to 4096"},
		"too many":           {table: "t", dimensions: "5000", message: "1 to 4096"},
		"none":               {table: "t", dimensions: "0", message: "1 to 4096"},
	} {
		clearEnv(t)
		t.Setenv(EnvVectorBucket, c.bucket)
		t.Setenv(EnvVectorTable, c.table)
		t.Setenv(EnvVectorDimensions, c.dimensions)
		v, err := Vectors(t.Context())
		if c.message != "" {
			if err == nil || !strings.Contains(err.Error(), c.message) {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if got := fmt.Sprintf("%T", v); err != nil || got != c.kind {
			t.Errorf("%s: %s, %v", name, got, err)
		}
		if c.bucket == "" {
			if err := SweepVectors(t.Context()); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}
