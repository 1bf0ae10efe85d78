/** The documents that the cases are taken from. */
const NODE = 'https://cloud.google.com/nodejs/docs/reference/firestore/latest/firestore';
export const AGGREGATE_FIELD = `${NODE}/aggregatefield`;

/** Every method of the API, with what it says of itself. */
export const METHODS =
  'https://docs.cloud.google.com/java/docs/reference/google-cloud-firestore/latest/com.google.firestore.v1.FirestoreGrpc.FirestoreFutureStub';
export const CODES =
  'https://firebase.google.com/docs/reference/android/com/google/firebase/firestore/FirebaseFirestoreException.Code';
export const COMMIT =
  'https://cloud.google.com/firestore/docs/reference/rest/latest/projects.databases.documents/commit';
export const QUERY =
  'https://cloud.google.com/python/docs/reference/firestore/latest/google.cloud.firestore_v1.types.StructuredQuery';
export const TRANSFORMS =
  'https://cloud.google.com/ruby/docs/reference/google-cloud-firestore-v1/latest/Google-Cloud-Firestore-V1-DocumentTransform-FieldTransform';
export const LISTEN_CHANGES =
  'https://cloud.google.com/dotnet/docs/reference/Google.Cloud.Firestore.V1/latest/Google.Cloud.Firestore.V1.TargetChange.Types.TargetChangeType';
export const LISTEN =
  'https://cloud.google.com/ruby/docs/reference/google-cloud-firestore-v1/0.6.0/Google-Cloud-Firestore-V1-ListenResponse';
export const READ_TIME =
  'https://docs.cloud.google.com/ruby/docs/reference/google-cloud-firestore-admin-v1/latest/Google-Cloud-Firestore-Admin-V1-Database-PointInTimeRecoveryEnablement';

export const QUOTAS = 'https://cloud.google.com/firestore/quotas';
export const QUERIES = 'https://firebase.google.com/docs/firestore/query-data/queries';
export const RANGES = 'https://firebase.google.com/docs/firestore/query-data/multiple-range-fields';
export const CURSORS = 'https://docs.cloud.google.com/firestore/docs/query-data/query-cursors';
export const AGGREGATIONS = 'https://cloud.google.com/firestore/docs/query-data/aggregation-queries';
export const INDEXES = 'https://docs.cloud.google.com/firestore/docs/concepts/index-overview';
export const MISSING_INDEX = 'https://cloud.google.com/firestore/docs/query-data/indexing';
export const EXPLAIN = 'https://cloud.google.com/firestore/docs/query-explain-report-reference';
export const TYPES = 'https://firebase.google.com/docs/firestore/manage-data/data-types';
export const SIZE = 'https://firebase.google.com/docs/firestore/storage-size';
export const VECTORS = 'https://firebase.google.com/docs/firestore/vector-search';
export const PIPELINES = 'https://firebase.google.com/docs/firestore/pipelines/pipelines-overview';
/** Users' words for an error that no document of the service words. */
export const REPORTED = 'https://firebeast.dev/tips/too-many-index-entries-for-entity';
export const TTL = 'https://cloud.google.com/firestore/docs/ttl';
export const CONTENTION = 'https://docs.cloud.google.com/firestore/docs/transaction-data-contention';
export const TRANSACTIONS = 'https://firebase.google.com/docs/firestore/manage-data/transactions';
/** A test of Google's own client against the service. */
export const TOO_OLD = 'https://github.com/googleapis/java-firestore/pull/670';
