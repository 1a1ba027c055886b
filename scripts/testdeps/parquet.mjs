// Usage: node parquet.mjs FILE
//
// Prints the columns and the rows of a Parquet file as JSON.
import { asyncBufferFromFile, parquetMetadataAsync, parquetReadObjects } from "hyparquet";
import { compressors } from "hyparquet-compressors";

const file = await asyncBufferFromFile(process.argv[2]);
const metadata = await parquetMetadataAsync(file);
const columns = metadata.schema.slice(1).map((element) => element.name);
const rows = await parquetReadObjects({ file, compressors });
const plain = (key, value) => (typeof value === "bigint" ? Number(value) : value);
console.log(JSON.stringify({ Columns: columns, Rows: rows }, plain));
