package resource

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"gateway/shared/store"
)

// Prefixes of sort keys, except those of records.
const (
	slugPrefix     = "SLUG"
	usePrefix      = "USE"
	listPrefix     = "LIST"
	archivedPrefix = "ARCHIVED"
	countPrefix    = "COUNT"
)

// OutboxPartitions is how many partitions share the outbox.
const OutboxPartitions = 16

// maxID bounds ids and slugs; the gateway makes no longer ones.
const maxID = 255

// validID reports whether s can be an id or a slug. Anything else names nothing; '#' could
// reach into another row.
func validID(s string) bool {
	if s == "" || len(s) > maxID || !utf8.ValidString(s) {
		return false
	}
	return strings.IndexFunc(s, func(r rune) bool { return r == '#' || r < 0x20 || r == 0x7f }) < 0
}

func recordKey(sc store.Scope, k Kind, id string) store.Key {
	return sc.Partition().Key(string(k), id)
}

func versionKey(sc store.Scope, k Kind, id string, n int64) store.Key {
	return sc.Partition().Key(string(k), id, fmt.Sprintf("v%09d", n))
}

func versionPrefix(k Kind, id string) string { return string(k) + "#" + id + "#v" }

func slugKey(sc store.Scope, k Kind, slug string) store.Key {
	return sc.Partition().Key(slugPrefix, string(k), slug)
}

func useKey(of, by Ref) store.Key {
	return of.Scope.Partition().Key(usePrefix, string(of.Kind), of.ID, string(by.Kind)+":"+by.ID)
}

func useQueryPrefix(of Ref) string {
	return usePrefix + "#" + string(of.Kind) + "#" + of.ID + "#"
}

func listKey(sc store.Scope, k Kind, row string, archived bool) store.Key {
	return sc.Partition().Key(listTop(archived), string(k), row)
}

func listTop(archived bool) string {
	if archived {
		return archivedPrefix
	}
	return listPrefix
}

func countKey(sc store.Scope, k Kind) store.Key {
	return sc.Partition().Key(countPrefix, string(k))
}

// generationKey has a separate partition, because it is read far more often than the
// organization's other rows.
func generationKey(org string) store.Key {
	return store.Scope{Org: org}.Partition("GEN").Key("-")
}

// OutboxPartition is one of the outbox's partitions, 0 to OutboxPartitions-1.
func OutboxPartition(n int) store.Partition {
	return store.System("OUTBOX#" + strconv.Itoa(n))
}

const hourForm = "2006-01-02T15"

func duePartition(kind string, at time.Time) store.Partition {
	return store.System("DUE#" + kind + "#" + at.UTC().Format(hourForm))
}

func dueKey(kind string, at time.Time, of Ref) store.Key {
	return duePartition(kind, at).Key(strconv.FormatInt(at.UnixMilli(), 10), of.Scope.Org, of.Scope.Workspace, string(of.Kind), of.ID)
}
