package main

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"cloud.google.com/go/firestore"
	"cloud.google.com/go/firestore/apiv1/firestorepb"
	"google.golang.org/api/iterator"
	"google.golang.org/grpc/codes"
)

func documents(ctx context.Context) error {
	client, err := firestore.NewClient(ctx, project)
	if err != nil {
		return err
	}
	defer client.Close()
	counter := client.Doc("counters/one")
	if _, err = counter.Create(ctx, map[string]any{"value": 0}); err != nil {
		return err
	}
	_, err = counter.Create(ctx, map[string]any{"value": 0})
	if err = refused("a document is created once", codes.AlreadyExists, err); err != nil {
		return err
	}
	if err = increments(ctx, client, counter); err != nil {
		return err
	}

	people := client.Collection("people")
	seen := make(chan error, 1)
	go func() {
		watch := people.Snapshots(ctx)
		defer watch.Stop()
		for {
			snapshot, err := watch.Next()
			if err != nil || snapshot.Size == 20 {
				seen <- err
				return
			}
		}
	}()
	bulk := client.BulkWriter(ctx)
	for n := range 20 {
		tags := []string{"a", "b"}[:n%3]
		person := map[string]any{"age": n, "tags": tags, "at": firestore.ServerTimestamp}
		if _, err = bulk.Set(people.Doc(fmt.Sprintf("%02d", n)), person); err != nil {
			return err
		}
	}
	bulk.End()
	if err = <-seen; err != nil {
		return err
	}
	fmt.Println("ok go: a listener sees a batch")

	var ages []int64
	query := people.Where("age", ">=", 18).OrderBy("age", firestore.Asc).Documents(ctx)
	for {
		found, err := query.Next()
		if err == iterator.Done {
			break
		}
		if err != nil {
			return err
		}
		ages = append(ages, found.Data()["age"].(int64))
	}
	if err = holds("a query filters and orders", slices.Equal(ages, []int64{18, 19}), ages); err != nil {
		return err
	}
	tagged := people.Where("tags", "array-contains", "b")
	answer, err := tagged.NewAggregationQuery().WithCount("all").Get(ctx)
	if err != nil {
		return err
	}
	count := answer["all"].(*firestorepb.Value).GetIntegerValue()
	return holds("an aggregation counts", count == 6, count)
}

func increments(ctx context.Context, client *firestore.Client, counter *firestore.DocumentRef) error {
	var group sync.WaitGroup
	failed := make(chan error, 50)
	for range 5 {
		group.Go(func() {
			for range 10 {
				failed <- client.RunTransaction(ctx, func(_ context.Context, tx *firestore.Transaction) error {
					now, err := tx.Get(counter)
					if err != nil {
						return err
					}
					value := now.Data()["value"].(int64)
					return tx.Update(counter, []firestore.Update{{Path: "value", Value: value + 1}})
				}, firestore.MaxAttempts(20))
			}
		})
	}
	group.Wait()
	close(failed)
	for err := range failed {
		if err != nil {
			return err
		}
	}
	now, err := counter.Get(ctx)
	if err != nil {
		return err
	}
	return holds("50 concurrent increments make 50", now.Data()["value"] == int64(50), now.Data())
}
