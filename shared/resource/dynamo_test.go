package resource

import (
	"testing"

	"gateway/shared/store"
	"gateway/shared/testkit/dynamotest"
)

// What must hold on one store must hold on the other. Each test gets tables of
// its own.
func TestOnDynamoDB(t *testing.T) {
	endpoint := dynamotest.Start(t)
	before := openStore
	openStore = func(t testing.TB) store.Store {
		t.Helper()
		s := dynamotest.Open(t, endpoint)
		t.Cleanup(func() { s.Close() })
		return s
	}
	defer func() { openStore = before }()
	for name, test := range map[string]func(*testing.T){
		"record":                TestRecordIsFoundByIDAndSlugAsItWasStored,
		"odd ids":               TestRecordsOfOtherScopesAndOddIDsAreNotFound,
		"slugs":                 TestSlugIsUniquePerScopeAndKind,
		"lists":                 TestListIsNewestFirstAndFollowsChanges,
		"other writer's list":   TestListOfAnotherWriterIsSeen,
		"archive":               TestArchivedRecordRetainsItsSlugUnlessFreed,
		"versions":              TestVersionsRetainTheirContentAndAreDeletedWithTheirRecord,
		"concurrent updates":    TestConcurrentUpdatesAreAllApplied,
		"quota":                 TestQuotaHoldsUnderConcurrentCreates,
		"use":                   TestUsedRecordIsNotDeletedAndItsUsersAreNamed,
		"use against delete":    TestUseThatRacesWithDeleteIsSeenByOneOfThem,
		"all or nothing":        TestChangeIsAllOrNothingAndSeesItself,
		"bounds":                TestChangeOutOfItsBoundsIsRefused,
		"due":                   TestDueRowsAreFoundByTheirHourUntilDone,
		"outbox":                TestOutboxMessageIsStoredWithItsChangeAndHandedOn,
		"freshness":             TestChangeIsSeenByEveryProcessWithinTwoSeconds,
		"revoked key":           TestRevokedOrChangedKeyIsRefusedEverywhereWithinTwoSeconds,
		"changing key":          TestKeyThatChangesWhileItIsReadIsNotRemembered,
		"foreign credential":    TestCredentialOfAnotherOrganisationIsNotOverwritten,
		"secrets":               TestSecretsSurviveUpdatesAndAreBoundToRecordAndName,
		"records of a kind":     TestAllRecordsAndVersionsAreLoadedOnce,
		"stale copy is refused": TestStaleCopyIsRefusedWhenTheCheckFails,
	} {
		t.Run(name, test)
	}
}
