DROP TABLE file_uses;
